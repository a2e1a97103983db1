// The points that RoiAlign samples in one region, and the four elements that each of them lies between.
// Source     ONNX RoiAlign-16.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/attributes.h"
#include "kernels/shape.h"

namespace stepscope::reference {

struct RoiPoint {
  std::array<std::int64_t, 4> place{};  // in the plane
  std::array<double, 4> weight{};       // all 0 more than one element outside
};

struct RoiRule {
  bool halfPixel = true;
  double scale = 1;
  std::int64_t ratio = 0;
  static RoiRule of(const Attributes& attrs);
};

class RoiRegion {
 public:
  // `box` is x1, y1, x2, y2; `bins` and `plane` are height and width.
  RoiRegion(const RoiRule& rule, const std::array<double, 4>& box, const std::array<std::int64_t, 2>& bins, const std::array<std::int64_t, 2>& plane);
  std::int64_t samples() const { return rows_ * columns_; }  // of every bin
  RoiPoint point(std::int64_t bin, std::int64_t sample) const;

 private:
  std::array<std::int64_t, 2> plane_{};
  std::int64_t across_ = 1, rows_ = 0, columns_ = 0;  // bins side by side; points of a bin
  double top_ = 0, left_ = 0, binHeight_ = 0, binWidth_ = 0;
};

}  // namespace stepscope::reference
