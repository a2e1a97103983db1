// ConcatTaken: the parts whose condition holds, one after another; each has extent 1 along the axis. LoopBound: what a loop
// gave, or the error that it goes on.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status concatTakenKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  const auto axis = normalizeAxis(spec.attrs.integer("axis", 0), static_cast<std::int64_t>(y.dims.size()));
  if (!axis) return kernelError(spec, "axis out of range for shape " + dimsText(y.dims));
  const auto a = static_cast<std::size_t>(*axis);
  const TensorView& taken = call.inputs[0];
  if (taken.dtype != DType::kBool || taken.elements() != static_cast<std::int64_t>(call.inputs.size()) - 1)
    return kernelError(spec, "conditions of shape " + dimsText(taken.dims) + "; expected one bool per part");
  const bool* reads = static_cast<const bool*>(taken.data);
  Dims part = y.dims;
  part[a] = 1;
  std::int64_t count = 0;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    if (!reads[i - 1]) continue;
    ++count;
    if (call.inputs[i].dtype != y.dtype || call.inputs[i].dims != part)
      return kernelError(spec, "part of shape " + dimsText(call.inputs[i].dims) + "; expected " + dimsText(part));
  }
  if (count != y.dims[a]) return kernelError(spec, std::to_string(count) + " parts fill shape " + dimsText(y.dims));
  const std::int64_t outer = product(y.dims, 0, a), inner = product(y.dims, a + 1, y.dims.size());
  dispatchBySize(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::int64_t place = 0;
    for (std::size_t i = 1; i < call.inputs.size(); ++i) {
      if (!reads[i - 1]) continue;
      for (std::int64_t o = 0; o < outer; ++o)
        copyRun(static_cast<T*>(y.data) + (o * count + place) * inner,
                static_cast<const T*>(call.inputs[i].data) + o * inner, inner);
      ++place;
    }
  });
  return {};
}

Status loopBoundKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[1], &y = call.outputs[0];
  if (call.inputs[0].dtype != DType::kBool || call.inputs[0].elements() != 1)
    return kernelError(spec, "condition of shape " + dimsText(call.inputs[0].dims) + "; expected one bool");
  if (*static_cast<const bool*>(call.inputs[0].data))
    return kernelError(spec, "the loop goes on after " + std::to_string(spec.attrs.integer("iterations", 0)) +
                                 " iterations; expected at most as many as the option loop.max_iterations says; hint: "
                                 "--set loop.max_iterations=N, or a shorter batch");
  if (x.dtype != y.dtype || x.dims != y.dims)
    return kernelError(spec, "x of shape " + dimsText(x.dims) + "; expected " + dimsText(y.dims));
  if (x.data == y.data) return {};
  dispatchBySize(y.dtype, [&](auto tag) {
    using T = decltype(tag);
    copyRun(static_cast<T*>(y.data), static_cast<const T*>(x.data), y.elements());
  });
  return {};
}

}  // namespace stepscope::reference
