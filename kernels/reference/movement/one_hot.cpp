// OneHot: values[1] where the position on `axis` equals the index (negative ones counted from depth), values[0] elsewhere.
#include <cmath>

#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status oneHotKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &indices = call.inputs[0], &depthView = call.inputs[1], &values = call.inputs[2], &y = call.outputs[0];
  if (values.elements() != 2) return kernelError(spec, "values of shape " + dimsText(values.dims) + "; expected [2]");
  if (depthView.elements() != 1)
    return kernelError(spec, "depth of shape " + dimsText(depthView.dims) + "; expected one number");
  const auto axis = normalizeAxis(spec.attrs.integer("axis", -1), static_cast<std::int64_t>(indices.dims.size()) + 1);
  if (!axis) return kernelError(spec, "axis out of range for indices of shape " + dimsText(indices.dims));
  const auto a = static_cast<std::size_t>(*axis);
  const auto asIndex = [](const TensorView& view, std::int64_t i) {
    if (!isFloating(view.dtype)) return elementAsInt(view, i);
    const double value = elementAsDouble(view, i);  // outside int64 (or NaN): no position equals it
    return value > -9e18 && value < 9e18 ? static_cast<std::int64_t>(value) : INT64_MIN / 2;
  };
  const std::int64_t depth = asIndex(depthView, 0);
  if (y.dims.size() != indices.dims.size() + 1 || y.dims[a] != depth || y.elements() != indices.elements() * depth)
    return kernelError(spec, "depth " + std::to_string(depth) + " differs from the planned shape " + dimsText(y.dims));
  const std::int64_t outer = product(indices.dims, 0, a), inner = product(indices.dims, a, indices.dims.size());
  dispatchBySize(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T off = static_cast<const T*>(values.data)[0], on = static_cast<const T*>(values.data)[1];
    T* to = static_cast<T*>(y.data);
    std::fill_n(to, y.elements(), off);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i) {
        std::int64_t k = asIndex(indices, o * inner + i);
        if (k < 0) k += depth;
        if (k >= 0 && k < depth) to[(o * depth + k) * inner + i] = on;
      }
  });
  return {};
}

}  // namespace stepscope::reference
