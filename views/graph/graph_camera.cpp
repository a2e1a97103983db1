// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/graph/graph_camera.h"

#include <algorithm>

#include "views/common/tokens.h"
#include "views/graph/graph_paint_context.h"

namespace stepscope {
namespace {
constexpr double kLeast = 0.001, kMost = 6;
// Of 100 %: names can just be read; they can be read at ease; the zoom in which a selection is shown; the same where both
// columns have room for it.
constexpr double kLegible = 0.42, kReadable = 0.5, kComfortable = 0.7, kRoomy = 0.85;

// Where second lines have come only half way they are ghosts: the user may pass there, a picture that was not zoomed by hand
// does not rest there.
double atRest(double scale) {
  return scale > shown_from::kDetails && scale < shown_from::kDetails + shown_from::kGrowth ? shown_from::kDetails : scale;
}

// Where a box has to be to count as in view: below the titles of the columns.
QRectF inner(const Viewport& view) { return QRectF(QPointF(), view.size).adjusted(8, 34, -8, -8); }

// Above the picture: below the titles of the columns, in pixels.
double topOf(const GraphScene& scene) { return scene.columnGap > 0 ? kGraphMargin + 10 : kGraphMargin; }

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
  ownZoom_ = false;
  const BoxF& b = scene.bounds;
  const double width = view_.size.width(), height = view_.size.height();
  const double top = topOf(scene);
  const double wide = std::max(1.0, width - 2 * kGraphMargin) / b.w, high = std::max(1.0, height - kGraphMargin - top) / b.h;
  // A long graph is shown from its beginning, readable, rather than as a thread.
  const double readable = 0.3 * base();
  double scale = std::clamp(std::min(wide, high), kLeast, 1.15 * base());
  if (scale < readable && high < wide && b.h > 40 * b.w) scale = std::min(wide, readable);
  scale = atRest(scale);
  view_.scaleX = view_.scaleY = scale;
  const double x = (width - b.w * scale) / 2, y = std::max(top, (height - b.h * scale + top - kGraphMargin) / 2);
  view_.origin = {-x / scale, -y / scale};
}

void GraphCamera::fitBox(const GraphScene& scene, int box) {
  fitted_ = false;
  ownZoom_ = true;
  const BoxF& b = scene.boxes[static_cast<std::size_t>(box)].at;
  const double width = view_.size.width(), height = view_.size.height();
  const double scale = std::clamp(std::min(width / (b.w + 120.0), height / (b.h + 120.0)), kReadable * base(), 1.0 * base());
  view_.scaleX = view_.scaleY = scale;
  view_.origin = {b.centerX() - width / scale / 2, b.centerY() - height / scale / 2};
  clamp(scene);
}

bool GraphCamera::contains(const GraphScene& scene, int box) const {
  return inner(view_).contains(view_.toPixel(rectOf(scene.boxes[static_cast<std::size_t>(box)].at)));
}

bool GraphCamera::showBox(const GraphScene& scene, int box, int partner) {
  const QRectF own = rectOf(scene.boxes[static_cast<std::size_t>(box)].at);
  const QRectF both = partner < 0 ? own : own.united(rectOf(scene.boxes[static_cast<std::size_t>(partner)].at));
  // The scale at which a rectangle just fits.
  const QRectF room = inner(view_);
  const auto fit = [&room](const QRectF& r) {
    return std::min(std::max(1.0, room.width() - 16) / r.width(), std::max(1.0, room.height() - 8) / r.height());
  };
  // A box too small to be read is not shown yet.
  const bool readable = view_.scaleX >= kReadable * base() && (ownZoom_ || view_.scaleX > shown_from::kDetails);
  double scale = view_.scaleX;
  if (!readable) {
    // Both columns where that costs little: a gradient is read beside what it belongs to.
    const double columns = view_.size.width() / (scene.bounds.w + 2 * kGraphMargin);
    scale = columns >= 0.8 * kComfortable * base() ? std::min(columns, kRoomy * base()) : kComfortable * base();
  }
  if (!ownZoom_ || !readable) scale = atRest(std::min(scale, std::max(fit(both), kLegible * base())));
  const bool pair = partner >= 0 && fit(both) >= scale;
  const QRectF target = pair ? both : own;
  if (scale == view_.scaleX && room.contains(view_.toPixel(target))) return false;
  fitted_ = false;
  ownZoom_ = ownZoom_ && readable;
  view_.scaleX = view_.scaleY = scale;
  const QRectF visible = view_.visible();
  const QRectF on = view_.toPixel(target);
  if (on.width() < view_.size.width() * 0.9 || pair || !readable)
    view_.origin.setX(target.center().x() - visible.width() / 2);
  view_.origin.setY(on.height() < view_.size.height() * 0.9 ? target.center().y() - visible.height() / 2 - 13 / scale
                                                            : target.top() - 40 / scale);
  fill(scene);
  return true;
}

bool GraphCamera::showGroup(const GraphScene& scene, int group) {
  QRectF both;
  for (const int box : scene.openGroups)
    if (scene.boxes[static_cast<std::size_t>(box)].group == group)
      both = both.united(rectOf(scene.boxes[static_cast<std::size_t>(box)].at));
  if (both.isEmpty()) return false;
  const QRectF room = inner(view_), on = view_.toPixel(both);
  if (on.left() >= room.left() && on.right() <= room.right()) return false;
  fitted_ = false;
  const double fit = room.width() / both.width(), wanted = std::max(std::min(view_.scaleX, fit), kLegible * base()),
               scale = std::min(view_.scaleX, wanted);
  // Its title keeps its height.
  view_.zoomAt({room.center().x(), on.top()}, scale / view_.scaleX, scale / view_.scaleX);
  const double wide = view_.visible().width();
  view_.origin.setX(both.width() * scale <= room.width() ? both.center().x() - wide / 2 : both.left() - room.left() / scale);
  clamp(scene);
  return true;
}

void GraphCamera::zoomAround(const GraphScene& scene, QPointF pixel, double factor) {
  factor = std::clamp(view_.scaleX * factor, kLeast, kMost * base()) / view_.scaleX;
  fitted_ = false;
  ownZoom_ = true;
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

void GraphCamera::fill(const GraphScene& scene) {
  const BoxF& b = scene.bounds;
  const QRectF visible = view_.visible();
  const double margin = kGraphMargin / view_.scaleX, top = topOf(scene) / view_.scaleY;
  const auto along = [](double origin, double from, double to, double room) {
    return to - from <= room ? from - (room - (to - from)) / 2 : std::clamp(origin, from, to - room);
  };
  view_.origin.setX(along(visible.x(), b.x - margin, b.right() + margin, visible.width()));
  view_.origin.setY(along(visible.y(), b.y - top, b.bottom() + margin, visible.height()));
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
