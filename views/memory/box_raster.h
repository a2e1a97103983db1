// SPDX-License-Identifier: GPL-3.0-or-later
// Boxes of a memory map as a picture of one byte per pixel, its class: a hundred thousand of them are painted in the time of
// one image. For screens; a few boxes, and pictures for a file, are painted as rectangles.
#pragma once

#include <QImage>
#include <QPainter>
#include <QRectF>

namespace stepscope {

class BoxRaster {
 public:
  // `area` in units of the painter; `ratio`: device pixels per unit.
  BoxRaster(const QRectF& area, double ratio);

  // Of a box the part inside the area. A later box covers an earlier one; every box has at least one pixel. `kind` in 0 …
  // 253, also the row of the colours.
  void add(const QRectF& box, int kind);
  void paint(QPainter& painter, const QList<QColor>& colours);

 private:
  QRectF area_;
  double ratio_;
  QImage image_;
};

}  // namespace stepscope
