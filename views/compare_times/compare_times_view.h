// SPDX-License-Identifier: GPL-3.0-or-later
// The times and bytes of two runs in tables: operators, phases of the step, the build, memory.
#pragma once

#include <QComboBox>

#include "views/common/row_table.h"
#include "views/compare_times/time_rows.h"

namespace stepscope {

class CompareTimesView : public TablePanel {
  Q_OBJECT

 public:
  explicit CompareTimesView(const ViewContext& context, QWidget* parent = nullptr);
  QWidget* headerWidget() override { return which_; }
  QString emptyText() const override;
  QString headerText() const override;
  QString saveState() const override;
  void restoreState(const QString& state) override;

 protected:
  void refill() override;

 private:
  bool comparable() const;  // see PairTimes
  Times which() const { return static_cast<Times>(which_->currentIndex()); }

  QComboBox* which_;
};

}  // namespace stepscope
