// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the lines of the instruction list: gutter with breakpoint or arrow, number, operator and place, time, bytes.
#pragma once

#include <QStyledItemDelegate>

#include "views/common/selection.h"

namespace stepscope {

class InstructionDelegate : public QStyledItemDelegate {
  Q_OBJECT

 public:
  InstructionDelegate(const SelectionModel& selection, QObject* parent = nullptr);

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  static int gutterWidth();

 private:
  const SelectionModel& selection_;
};

}  // namespace stepscope
