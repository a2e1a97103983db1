// SPDX-License-Identifier: GPL-3.0-or-later
// A histogram of binary exponents in a cell of a table: bars for the step in low precision, a line for the same values in
// float32, both as shares of the largest bar. Where the range of the type ends, a dashed line. All rows have one axis.
#pragma once

#include <QStyledItemDelegate>
#include <memory>
#include <utility>

#include "engine/snapshot/precision.pb.h"

namespace stepscope {

// Exponents of the smallest normal and of the largest number of a type, by its name; {0, 0} for an unknown one.
std::pair<int, int> exponentRange(const std::string& dtype);

class ExponentDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  explicit ExponentDelegate(QObject* parent = nullptr) : QStyledItemDelegate(parent) {}

  void setReport(std::shared_ptr<const snapshot::PrecisionReport> report);
  // First and last exponent of the axis; equal where there is nothing to draw.
  std::pair<int, int> axis() const { return {first_, last_}; }

  // The row's key (RowTableModel::kKeyRole) is the index of its class.
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  std::shared_ptr<const snapshot::PrecisionReport> report_;
  int first_ = 0, last_ = 0;
};

}  // namespace stepscope
