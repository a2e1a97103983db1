// Compress: the slices along an axis, or the elements, where the condition holds.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status compressKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &condition = call.inputs[1];
  if (condition.dtype != DType::kBool)
    return kernelError(spec, "condition of type " + std::string(dtypeName(condition.dtype)));
  std::size_t axis = 0;
  std::int64_t outer = 1, extent = x.elements(), inner = 1;
  const bool flat = !spec.attrs.has("axis");
  if (!flat) {
    const auto normal = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(x.dims.size()));
    if (!normal) return kernelError(spec, "axis out of range for shape " + dimsText(x.dims));
    axis = static_cast<std::size_t>(*normal);
    outer = product(x.dims, 0, axis);
    extent = x.dims[axis];
    inner = product(x.dims, axis + 1, x.dims.size());
  }
  const auto* keep = static_cast<const std::uint8_t*>(condition.data);
  const std::int64_t listed = condition.elements();
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < listed; ++k) {
    if (keep[k] == 0) continue;
    if (k >= extent) return indexError(spec, k, k, extent);
    ++count;
  }
  Dims dims{count};
  if (!flat) {
    dims = x.dims;
    dims[axis] = count;
  }
  SS_TRY(prepareOutput(spec, call, 0, std::move(dims)));
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    T* to = static_cast<T*>(call.outputs[0].data);
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t k = 0; k < listed; ++k) {
        if (keep[k] == 0) continue;
        copyRun(to, static_cast<const T*>(x.data) + (o * extent + k) * inner, inner);
        to += inner;
      }
  });
  return {};
}

}  // namespace stepscope::reference
