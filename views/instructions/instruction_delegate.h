// SPDX-License-Identifier: GPL-3.0-or-later
// Paints the lines of the instruction list: gutter with breakpoint or arrow, number, operator and place, time, bytes where
// there is room.
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

  // What of an operator and its place is written in `room` pixels, with a gap between them. The path of the module stays
  // whole as long as the operator keeps half of the room; what the node computes ("· d weight") is shortened first.
  struct Words {
    QString op, place;
    int opWidth = 0;
  };
  // Of number, time and bytes with their gaps, in a list of that many lines.
  static int columnsWidth(int lines, const QFontMetrics& small);
  // Whether a name of usual length has room next to the bytes. Else they are left out, and what takes no time says why in
  // its place.
  static bool hasRoomForBytes(int width, int lines, const QFontMetrics& op, const QFontMetrics& small);
  static Words words(const QString& op, const QString& place, const QFontMetrics& opMetrics,
                     const QFontMetrics& placeMetrics, int room);

 private:
  const SelectionModel& selection_;
};

}  // namespace stepscope
