// SPDX-License-Identifier: GPL-3.0-or-later
// The part of a picture that a canvas shows: scene coordinates ↔ widget pixels, zoom and pan. A value.
//
// Scales are pixels per scene unit; origin is the scene point at the top left pixel. Coordinates are double: a timeline
// counts nanoseconds of a clock that started long ago.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>

namespace stepscope {

struct Viewport {
  QSizeF size;  // pixels
  QPointF origin;
  double scaleX = 1, scaleY = 1;

  double toX(double x) const { return (x - origin.x()) * scaleX; }
  double toY(double y) const { return (y - origin.y()) * scaleY; }
  QPointF toPixel(QPointF p) const { return {toX(p.x()), toY(p.y())}; }
  QRectF toPixel(const QRectF& r) const { return {toX(r.x()), toY(r.y()), r.width() * scaleX, r.height() * scaleY}; }
  QPointF toScene(QPointF p) const { return {origin.x() + p.x() / scaleX, origin.y() + p.y() / scaleY}; }
  QRectF visible() const { return {origin.x(), origin.y(), size.width() / scaleX, size.height() / scaleY}; }

  void panPixels(QPointF by) { origin -= QPointF(by.x() / scaleX, by.y() / scaleY); }
  // Keeps the scene point under `pixel` where it is.
  void zoomAt(QPointF pixel, double factorX, double factorY) {
    const QPointF fixed = toScene(pixel);
    scaleX *= factorX;
    scaleY *= factorY;
    origin = {fixed.x() - pixel.x() / scaleX, fixed.y() - pixel.y() / scaleY};
  }
};

}  // namespace stepscope
