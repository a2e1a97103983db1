// Shape and Size: extents as int64.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status shapeKernel(const KernelSpec& spec, const KernelCall& call) {
  const Dims& dims = call.inputs[0].dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto clamp = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const std::int64_t start = clamp(spec.attrs.integer("start", 0));
  const std::int64_t end = std::max(start, clamp(spec.attrs.integer("end", rank)));
  const std::int64_t count = end - start;
  SS_TRY(checkOutput(spec, call, 0, &count, 1));
  std::copy_n(dims.begin() + start, count, static_cast<std::int64_t*>(call.outputs[0].data));
  return {};
}

Status sizeKernel(const KernelSpec&, const KernelCall& call) {
  *static_cast<std::int64_t*>(call.outputs[0].data) = call.inputs[0].elements();
  return {};
}

}  // namespace stepscope::reference
