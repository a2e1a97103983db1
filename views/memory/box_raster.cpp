// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/memory/box_raster.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stepscope {
namespace {
constexpr int kNothing = 0, kMostKinds = 254;
}

BoxRaster::BoxRaster(const QRectF& area, double ratio)
    : area_(area),
      ratio_(ratio),
      image_(std::max(1, static_cast<int>(std::ceil(area.width() * ratio))),
             std::max(1, static_cast<int>(std::ceil(area.height() * ratio))), QImage::Format_Indexed8) {
  image_.setColorCount(kMostKinds + 1);
  image_.fill(kNothing);
}

void BoxRaster::add(const QRectF& box, int kind) {
  const auto pixel = [this](double v, double from, int most) {
    return static_cast<int>(std::lround(std::clamp((v - from) * ratio_, 0.0, static_cast<double>(most))));
  };
  const int left = std::min(pixel(box.left(), area_.left(), image_.width()), image_.width() - 1),
            top = std::min(pixel(box.top(), area_.top(), image_.height()), image_.height() - 1);
  const int right = std::max(left + 1, pixel(box.right(), area_.left(), image_.width())),
            bottom = std::max(top + 1, pixel(box.bottom(), area_.top(), image_.height()));
  const int index = std::clamp(kind, 0, kMostKinds - 1) + 1;
  for (int y = top; y < bottom; ++y) std::memset(image_.scanLine(y) + left, index, static_cast<std::size_t>(right - left));
}

void BoxRaster::paint(QPainter& painter, const QList<QColor>& colours) {
  image_.setColor(kNothing, qRgba(0, 0, 0, 0));
  for (int i = 0; i < kMostKinds; ++i) image_.setColor(i + 1, i < colours.size() ? colours[i].rgba() : qRgba(0, 0, 0, 0));
  painter.drawImage(QRectF(area_.topLeft(), QSizeF(image_.size()) / ratio_), image_);
}

}  // namespace stepscope
