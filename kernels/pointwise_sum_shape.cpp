#include "kernels/pointwise_sum_shape.h"

#include <algorithm>
#include <vector>

#include "kernels/strided_view.h"

namespace stepscope {

Result<PointwiseSumShape> pointwiseSumShape(const KernelSpec& spec) {
  PointwiseSumShape shape;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    SS_ASSIGN(const StridedView seen, seenOperand(spec.domain, spec.op, i, spec.inputs[i].dims, spec.attrs));
    SS_ASSIGN(shape.dims, broadcastDims(shape.dims, seen.dims));
  }
  shape.mean = spec.attrs.integer("mean", 0) != 0;
  if (shape.dims.size() > 63)
    return invalid("PointwiseSum: " + std::to_string(shape.dims.size()) + " axes; expected at most 63");
  for (const std::int64_t axis : spec.attrs.integers("axes")) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(shape.dims.size()))
      return invalid("PointwiseSum: axis " + std::to_string(axis) + " of " + dimsText(shape.dims));
    shape.axes |= std::uint64_t{1} << axis;
  }
  std::int64_t kept = 1;
  std::vector<bool> summed;  // of axes with several elements
  for (std::size_t i = 0; i < shape.dims.size(); ++i) {
    const bool sums = (shape.axes >> i & 1U) != 0;
    if (!sums) kept *= shape.dims[i];
    if (shape.dims[i] != 1) summed.push_back(sums);
  }
  if (spec.outputs.size() != 1 || elementCount(spec.outputs[0].dims) != kept)
    return invalid("PointwiseSum: the result has extents " +
                   (spec.outputs.empty() ? std::string("none") : dimsText(spec.outputs[0].dims)) + "; expected " +
                   std::to_string(kept) + " elements");
  shape.ofTrailing = std::ranges::is_sorted(summed);
  shape.ofLeading = std::ranges::is_sorted(summed.rbegin(), summed.rend());
  return shape;
}

}  // namespace stepscope
