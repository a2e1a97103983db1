// Scales and zero points of quantised operands, one for the tensor or one per row, column or channel.
#pragma once

#include <cmath>

#include "kernels/kernel.h"

namespace stepscope::reference {

// A parameter that is absent (gives `fallback`), has one element, or one per index of an axis of `extent`.
class PerAxis {
 public:
  static Result<PerAxis> read(const KernelCall& call, std::size_t input, std::int64_t extent, double fallback) {
    PerAxis p;
    p.fallback_ = fallback;
    if (!call.inputPresent(input)) return p;
    p.view_ = call.inputs[input];
    const std::int64_t count = p.view_.elements();
    if (count != 1 && count != extent)
      return unsupported("quantisation parameter of shape " + dimsText(p.view_.dims) + "; expected 1 or " +
                         std::to_string(extent) + " elements");
    p.step_ = count == 1 ? 0 : 1;
    return p;
  }
  double operator[](std::int64_t i) const { return view_.present() ? elementAsDouble(view_, i * step_) : fallback_; }

 private:
  TensorView view_;
  double fallback_ = 0;
  std::int64_t step_ = 0;
};

// round-half-even(value / scale) + zero, saturated to int8 or uint8.
inline double quantizeSaturated(double value, double scale, double zero, DType dtype) {
  const double low = dtype == DType::kI8 ? -128 : 0, high = dtype == DType::kI8 ? 127 : 255;
  const double q = std::nearbyint(value / scale) + zero;
  return q < low ? low : q > high ? high : q == q ? q : low;
}

}  // namespace stepscope::reference
