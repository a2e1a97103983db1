// Resize as one small sparse matrix per axis: which input positions an output position reads, and with what weight.
//
// Every mode is such a matrix, so the forward pass applies the matrices axis by axis and the gradient their transposes.
// Source     ONNX Resize-19 and its reference implementation.
#pragma once

#include <vector>

#include "kernels/kernel.h"

namespace stepscope::reference {

struct ResizeAxis {
  std::int64_t in = 0, out = 0;
  std::vector<std::size_t> start;      // out + 1 entries: taps of output o are start[o] .. start[o + 1]
  std::vector<std::int64_t> position;  // input positions, inside 0..in-1
  std::vector<double> weight;
  std::vector<bool> outside;  // per output: takes the extrapolation value
};

struct ResizeAxes {
  std::vector<ResizeAxis> axes;
  bool nearest = false;  // every tap list is one element of weight 1
  double extrapolation = 0;
};

// Tables for x -> y from the attributes and the inputs roi, scales, sizes (numbers `roi`, roi + 1, roi + 2 of the call).
// Errors: unknown modes, counts or values out of range, extents of y that do not follow.
Result<ResizeAxes> resizeAxes(const Attributes& attrs, const KernelCall& call, std::size_t roi, const Dims& x,
                              const Dims& y);

}  // namespace stepscope::reference
