// Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order. Nothing to do where the plan made it a view.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status viewKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (x.elements() != y.elements())
    return kernelError(spec, "input of shape " + dimsText(x.dims) + " does not fill shape " + dimsText(y.dims));
  if (x.data == y.data) return {};
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    copyRun(static_cast<T*>(y.data), static_cast<const T*>(x.data), x.elements());
  });
  return {};
}

}  // namespace stepscope::reference
