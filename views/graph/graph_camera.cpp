// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_camera.h"

#include <algorithm>

#include "views/common/tokens.h"

namespace stepscope {
namespace {
constexpr double kLeast = 0.001, kMost = 6;
constexpr double kReadable = 0.5, kComfortable = 0.7;  // of 100 %: names can be read; the zoom in which a selection is shown
}  // namespace

double GraphCamera::base() { return Metrics::current().unit / 13.0; }

void GraphCamera::resize(const GraphScene* scene, QSizeF size) {
  view_.size = size;
  if (scene == nullptr) return;
  if (fitted_) {
    fitAll(*scene);
  } else {
    clamp(*scene);
  }
}

void GraphCamera::fitAll(const GraphScene& scene) {
  fitted_ = true;
  const BoxF& b = scene.bounds;
  const double width = view_.size.width(), height = view_.size.height();
  const double top = scene.columnGap > 0 ? kGraphMargin + 10 : kGraphMargin;
  const double wide = std::max(1.0, width - 2 * kGraphMargin) / b.w, high = std::max(1.0, height - kGraphMargin - top) / b.h;
  // A long graph is shown from its beginning, readable, rather than as a thread.
  const double readable = 0.3 * base();
  double scale = std::clamp(std::min(wide, high), kLeast, 1.15 * base());
  if (scale < readable && high < wide && b.h > 40 * b.w) scale = std::min(wide, readable);
  view_.scaleX = view_.scaleY = scale;
  const double x = (width - b.w * scale) / 2, y = std::max(top, (height - b.h * scale + top - kGraphMargin) / 2);
  view_.origin = {-x / scale, -y / scale};
}

void GraphCamera::fitBox(const GraphScene& scene, int box) {
  fitted_ = false;
  const BoxF& b = scene.boxes[static_cast<std::size_t>(box)].at;
  const double width = view_.size.width(), height = view_.size.height();
  const double scale = std::clamp(std::min(width / (b.w + 120.0), height / (b.h + 120.0)), kReadable * base(), 1.0 * base());
  view_.scaleX = view_.scaleY = scale;
  view_.origin = {b.centerX() - width / scale / 2, b.centerY() - height / scale / 2};
  clamp(scene);
}

bool GraphCamera::showBox(const GraphScene& scene, int box) {
  const BoxF& b = scene.boxes[static_cast<std::size_t>(box)].at;
  const QRectF on = view_.toPixel(QRectF(b.x, b.y, b.w, b.h));
  // A box too small to be read is not shown yet.
  const bool readable = view_.scaleX >= kReadable * base();
  if (readable && QRectF(QPointF(), view_.size).adjusted(8, 34, -8, -8).contains(on)) return false;
  fitted_ = false;
  if (!readable) {
    // Both columns where that costs little: a gradient is read beside what it belongs to.
    const double both = view_.size.width() / (scene.bounds.w + 2 * kGraphMargin);
    view_.scaleX = view_.scaleY =
        both >= 0.8 * kComfortable * base() ? std::min(both, kComfortable * base()) : kComfortable * base();
    view_.origin.setX(b.centerX() - view_.visible().width() / 2);
  }
  const QRectF visible = view_.visible();
  if (readable && on.width() < view_.size.width() * 0.9) view_.origin.setX(b.centerX() - visible.width() / 2);
  view_.origin.setY(on.height() < view_.size.height() * 0.9 ? b.centerY() - visible.height() / 2 : b.y - 40 / view_.scaleY);
  // Keep both columns in view where there is room for them.
  if (scene.bounds.w <= visible.width()) view_.origin.setX((scene.bounds.w - visible.width()) / 2);
  clamp(scene);
  return true;
}

void GraphCamera::zoomAround(const GraphScene& scene, QPointF pixel, double factor) {
  factor = std::clamp(view_.scaleX * factor, kLeast, kMost * base()) / view_.scaleX;
  fitted_ = false;
  view_.zoomAt(pixel, factor, factor);
  clamp(scene);
}

void GraphCamera::pan(const GraphScene& scene, QPointF pixels) {
  view_.panPixels(pixels);
  fitted_ = false;
  clamp(scene);
}

void GraphCamera::follow(const GraphScene& scene, const BoxF& before, const BoxF& after, bool group) {
  view_.origin += group ? QPointF(after.centerX() - before.centerX(), after.y - before.y)
                        : QPointF(after.centerX() - before.centerX(), after.centerY() - before.centerY());
  clamp(scene);
}

void GraphCamera::clamp(const GraphScene& scene) {
  const QRectF visible = view_.visible();
  const BoxF& b = scene.bounds;
  const double keepX = std::min(80 / view_.scaleX, static_cast<double>(b.w)),
               keepY = std::min(80 / view_.scaleY, static_cast<double>(b.h));
  view_.origin.setX(std::clamp(view_.origin.x(), b.x + keepX - visible.width(), b.right() - keepX));
  view_.origin.setY(std::clamp(view_.origin.y(), b.y + keepY - visible.height(), b.bottom() - keepY));
}

}  // namespace stepscope
