#include "kernels/reference/linear/roi_region.h"

#include <algorithm>
#include <cmath>

namespace stepscope::reference {
namespace {

constexpr std::int64_t kMostPoints = 1 << 12;  // per bin and axis: regions come with the data

RoiPoint neighbours(double y, double x, std::int64_t height, std::int64_t width) {
  RoiPoint p;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return p;
  const auto split = [](double at, std::int64_t extent, std::int64_t& low, std::int64_t& high) {
    at = std::max(at, 0.0);
    low = static_cast<std::int64_t>(at);
    if (low >= extent - 1) {
      low = high = extent - 1;
      return 0.0;
    }
    high = low + 1;
    return at - static_cast<double>(low);
  };
  std::int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
  const double ty = split(y, height, y0, y1), tx = split(x, width, x0, x1);
  p.place = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  p.weight = {(1 - ty) * (1 - tx), (1 - ty) * tx, ty * (1 - tx), ty * tx};
  return p;
}

}  // namespace

RoiRule RoiRule::of(const Attributes& attrs) {
  return {attrs.text("coordinate_transformation_mode", "half_pixel") == "half_pixel", static_cast<double>(attrs.real("spatial_scale", 1.0f)),
          attrs.integer("sampling_ratio", 0)};
}

RoiRegion::RoiRegion(const RoiRule& rule, const std::array<double, 4>& box, const std::array<std::int64_t, 2>& bins, const std::array<std::int64_t, 2>& plane)
    : plane_(plane), across_(bins[1]) {
  const double scale = rule.scale, offset = rule.halfPixel ? 0.5 : 0;
  left_ = box[0] * scale - offset;
  top_ = box[1] * scale - offset;
  double width = box[2] * scale - offset - left_, height = box[3] * scale - offset - top_;
  if (!rule.halfPixel) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  binHeight_ = height / static_cast<double>(bins[0]);
  binWidth_ = width / static_cast<double>(bins[1]);
  const auto samples = [&](double bin) {
    if (rule.ratio > 0) return std::min(rule.ratio, kMostPoints);
    const double wished = std::ceil(bin);
    return wished > 0 ? static_cast<std::int64_t>(std::min(wished, static_cast<double>(kMostPoints))) : std::int64_t{0};
  };
  rows_ = samples(binHeight_);
  columns_ = samples(binWidth_);
}

RoiPoint RoiRegion::point(std::int64_t bin, std::int64_t sample) const {
  const auto row = static_cast<double>(sample / columns_), column = static_cast<double>(sample % columns_);
  const double at = top_ + static_cast<double>(bin / across_) * binHeight_ + (row + 0.5) * binHeight_ / static_cast<double>(rows_);
  const double along = left_ + static_cast<double>(bin % across_) * binWidth_ + (column + 0.5) * binWidth_ / static_cast<double>(columns_);
  return neighbours(at, along, plane_[0], plane_[1]);
}

}  // namespace stepscope::reference
