// GatherElements: y[i] = x[i with i[axis] = indices[i]]; GatherElementsGrad adds back. The walk over the indices is shared
// with ScatterElements.
#include "kernels/reference/movement/element_walk.h"

namespace stepscope::reference {

Status gatherElementsKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  SS_TRY(checkOutput(spec, call, 0, indices.dims.data(), indices.dims.size()));
  Status status;
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* from = static_cast<const T*>(x.data);
    T* to = static_cast<T*>(y.data);
    status = walkElements(spec, x.dims, indices, [&](std::int64_t i, std::int64_t place) { to[i] = from[place]; });
  });
  return status;
}

Status gatherElementsGradKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &indices = call.inputs[1], &dx = call.outputs[0];
  if (dy.dims != indices.dims)
    return kernelError(spec, "gradient " + dimsText(dy.dims) + " and indices " + dimsText(indices.dims) + " differ");
  return accumulate(spec, call, 0, [&](auto* sums, const auto* values) -> Status {
    using A = std::remove_pointer_t<decltype(sums)>;
    return walkElements(spec, dx.dims, indices,
                        [&](std::int64_t i, std::int64_t place) { sums[place] = A(sums[place] + A(values[i])); });
  });
}

}  // namespace stepscope::reference
