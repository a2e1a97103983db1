// SPDX-License-Identifier: GPL-3.0-or-later
// The value of an option that is on or off as a switch: one click turns it, a double click no more than that.
#pragma once

#include <QStyledItemDelegate>
#include <functional>

class QTableView;

namespace stepscope {

class SwitchDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  // `stateOf`: of an index of the table; 1 on, 0 off, -1 no switch. It is asked while painting: short.
  SwitchDelegate(QTableView& table, int column, std::function<int(const QModelIndex&)> stateOf);

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;

 signals:
  void turned(const QModelIndex& index);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QTableView& table_;
  int column_;
  std::function<int(const QModelIndex&)> stateOf_;
  bool doubled_ = false;  // the release that follows belongs to a double click
};

}  // namespace stepscope
