// Where RoiAlign samples along one axis of one region, and the two elements that each sample lies between.
// Source     ONNX RoiAlign-16.
#pragma once

#include <cstdint>

#include "kernels/attributes.h"

namespace stepscope::reference {

struct RoiRule {
  bool halfPixel = true;
  double scale = 1;
  std::int64_t ratio = 0;  // samples per bin; 0: as many as the bin has elements
  static RoiRule of(const Attributes& attrs);
};

// Both weights are 0 more than one element outside.
struct RoiTap {
  std::int64_t low = 0, high = 0;
  double lowWeight = 0, highWeight = 0;
};

class RoiAxis {
 public:
  // The region's ends along the axis, before they are scaled; the axis has `extent` elements.
  RoiAxis(const RoiRule& rule, double from, double to, std::int64_t bins, std::int64_t extent);
  std::int64_t samples() const { return samples_; }  // of every bin
  RoiTap tap(std::int64_t bin, std::int64_t sample) const;

 private:
  std::int64_t extent_ = 0, samples_ = 0;
  double start_ = 0, bin_ = 0;
};

}  // namespace stepscope::reference
