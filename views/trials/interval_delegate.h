// SPDX-License-Identifier: GPL-3.0-or-later
// The interval of a ratio in a cell of a table: a bar from its low to its high end, a tick at the median, a line at 1. All
// rows have one logarithmic axis; an end beyond it is drawn as an arrow.
#pragma once

#include <QStyledItemDelegate>
#include <utility>

#include "engine/snapshot/lab.pb.h"

namespace stepscope {

// Both ends of an axis that holds every interval and 1; within a quarter and four times.
std::pair<double, double> ratioAxis(const snapshot::TrialsReport& report);

class IntervalDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  explicit IntervalDelegate(QObject* parent = nullptr) : QStyledItemDelegate(parent) {}

  void setReport(const snapshot::TrialsReport& report);

  // The row's key (RowTableModel::kKeyRole) is the index of its trial.
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 private:
  struct Interval {
    double low = 1, median = 1, high = 1;
    bool measured = false, faster = false, slower = false;
  };
  std::vector<Interval> intervals_;
  double first_ = 1, last_ = 1;
};

}  // namespace stepscope
