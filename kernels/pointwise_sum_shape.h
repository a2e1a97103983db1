// What stepscope.PointwiseSum computes: the chain of attribute `steps` (pointwise_program.h) over the extents that its
// inputs, or what it sees of them (strided_view.h), broadcast to, summed along `axes` of them; the mean where `mean` is 1.
// The result has the extents of attribute `shape`, which are those that stay, with axes of one element wherever they are
// wanted.
//
//   y[j] = sum_i chain(x0[i, j], x1[i, j] …)
#pragma once

#include "kernels/kernel.h"

namespace stepscope {

struct PointwiseSumShape {
  Dims dims;               // of the chain
  std::uint64_t axes = 0;  // bit i set: axis i is summed
  bool mean = false;
  // Whether the summed axes stand before or behind all others; axes of one element stand where they like. Both hold where
  // all axes are summed, or none.
  bool ofLeading = false, ofTrailing = false;
};

// Errors: kInvalidArgument for inputs that do not broadcast, an axis out of range, a result of another number of elements.
Result<PointwiseSumShape> pointwiseSumShape(const KernelSpec& spec);

}  // namespace stepscope
