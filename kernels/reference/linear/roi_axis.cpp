#include "kernels/reference/linear/roi_axis.h"

#include <algorithm>
#include <cmath>

namespace stepscope::reference {
namespace {

constexpr std::int64_t kMostSamples = 1 << 12;  // per bin: regions come with the data

}  // namespace

RoiRule RoiRule::of(const Attributes& attrs) {
  return {attrs.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
          static_cast<double>(attrs.real("spatial_scale", 1.0f)), attrs.integer("sampling_ratio", 0)};
}

RoiAxis::RoiAxis(const RoiRule& rule, double from, double to, std::int64_t bins, std::int64_t extent) : extent_(extent) {
  const double offset = rule.halfPixel ? 0.5 : 0;
  start_ = from * rule.scale - offset;
  double length = to * rule.scale - offset - start_;
  if (!rule.halfPixel) length = std::max(length, 1.0);
  bin_ = length / static_cast<double>(bins);
  const double wished = std::ceil(bin_);
  if (rule.ratio > 0)
    samples_ = std::min(rule.ratio, kMostSamples);
  else
    samples_ = wished > 0 ? static_cast<std::int64_t>(std::min(wished, static_cast<double>(kMostSamples))) : 0;
}

RoiTap RoiAxis::tap(std::int64_t bin, std::int64_t sample) const {
  double at =
      start_ + static_cast<double>(bin) * bin_ + (static_cast<double>(sample) + 0.5) * bin_ / static_cast<double>(samples_);
  if (!(at >= -1 && at <= static_cast<double>(extent_))) return {};
  at = std::max(at, 0.0);
  const auto low = static_cast<std::int64_t>(at);
  if (low >= extent_ - 1) return {extent_ - 1, extent_ - 1, 1, 0};
  const double t = at - static_cast<double>(low);
  return {low, low + 1, 1 - t, t};
}

}  // namespace stepscope::reference
