// Extents of Resize from its attributes, scales and sizes.
//
// Source     ONNX Resize-19: axes, keep_aspect_ratio_policy.
#pragma once

#include <vector>

#include "kernels/attributes.h"
#include "kernels/shape.h"

namespace stepscope {

struct ResizeShape {
  std::vector<std::size_t> axes;  // resized axes, in the order of roi, scales and sizes
  std::vector<double> scales;     // per axis of x; 1 for axes that are not resized
  Dims y;
};

// Exactly one of `scales` and `sizes` is not empty.
// Errors: counts that differ from the axes, scales that are not positive and finite, sizes below 0, axes out of range.
Result<ResizeShape> resizeShape(const Attributes& attrs, const Dims& x, const std::vector<double>& scales,
                                const std::vector<std::int64_t>& sizes);

}  // namespace stepscope
