// SPDX-License-Identifier: GPL-3.0-or-later
// A text of a report, set in lines of a width.
#pragma once

#include <QPointF>
#include <QTextLayout>
#include <memory>

#include "app/workbench/print/paper.h"
#include "storage/report/document.h"

class QPainter;

namespace stepscope::print {

struct TextLook {
  double size = kBodySize;
  QColor colour = inkOf("text");
  bool right = false;
  bool bold = false;
  storage::doc::Colour swatch = {};  // a square of this colour before it
};

class SetText {
 public:
  // `width` in units of the device; 0: as wide as it is, lines only where the text has them.
  SetText(const Paper& paper, const storage::doc::Text& text, const TextLook& look, double width);

  double height() const { return height_; }
  double width() const { return width_; }  // of its longest line
  void draw(QPainter& painter, QPointF upperLeft) const;

 private:
  std::unique_ptr<QTextLayout> layout_;
  double height_ = 0, width_ = 0;
};

}  // namespace stepscope::print
