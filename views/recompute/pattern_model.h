// SPDX-License-Identifier: GPL-3.0-or-later
// The candidates as rows, one per pattern, with a check box: whether the plan that is being put together has them.
#pragma once

#include <map>
#include <memory>

#include "views/common/row_table.h"

namespace stepscope {

class PatternModel : public RowTableModel {
  Q_OBJECT

 public:
  enum Column { kPattern, kCount, kSaved, kCost, kRatio, kKept, kShapes };

  explicit PatternModel(QObject* parent = nullptr);

  void setReport(const std::shared_ptr<const snapshot::RecomputeReport>& report);
  // How many of the first occurrences of each pattern are chosen, -1 = all; see planEntries().
  // `budget`: the plan that runs is this choice and what a budget added to it.
  void setChosen(const std::map<QString, qint64>& chosen, bool budget = false);
  void setReadOnly(bool readOnly);
  // Empty for a row that is not there.
  QString pattern(int row) const;

  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 signals:
  // The user ticked a box; the owner answers with setChosen().
  void ticked(const QString& pattern, bool on);

 private:
  qint64 chosenOf(int row) const;
  QString countText(int row) const;

  std::shared_ptr<const snapshot::RecomputeReport> report_;
  std::map<QString, qint64> chosen_;
  bool budget_ = false;
  bool readOnly_ = false;
};

}  // namespace stepscope
