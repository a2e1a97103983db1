// ReverseSequence: y[t, b] = x[lens[b]-1-t, b] for t < lens[b], else x[t, b]; either axis order.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status reverseSequenceKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &lens = call.inputs[1], &y = call.outputs[0];
  const std::int64_t batchAxis = spec.attrs.integer("batch_axis", 1), timeAxis = spec.attrs.integer("time_axis", 0);
  if (x.dims.size() < 2 || x.dims != y.dims || batchAxis + timeAxis != 1 || batchAxis * timeAxis != 0)
    return kernelError(spec, "axes do not fit shape " + dimsText(x.dims));
  const std::int64_t batches = x.dims[static_cast<std::size_t>(batchAxis)],
                     times = x.dims[static_cast<std::size_t>(timeAxis)];
  if (lens.elements() != batches)
    return kernelError(spec, std::to_string(lens.elements()) + " lengths; expected " + std::to_string(batches));
  for (std::int64_t b = 0; b < batches; ++b)
    if (const std::int64_t length = elementAsInt(lens, b); length < 0 || length > times)
      return kernelError(spec, "length " + std::to_string(length) + " at position " + std::to_string(b) + "; valid 0.." +
                                   std::to_string(times));
  const std::int64_t inner = product(x.dims, 2, x.dims.size());
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto at = [&](std::int64_t b, std::int64_t t) {
      return (batchAxis == 0 ? b * times + t : t * batches + b) * inner;
    };
    for (std::int64_t b = 0; b < batches; ++b) {
      const std::int64_t length = elementAsInt(lens, b);
      for (std::int64_t t = 0; t < times; ++t)
        copyRun(static_cast<T*>(y.data) + at(b, t), static_cast<const T*>(x.data) + at(b, t < length ? length - 1 - t : t),
                inner);
    }
  });
  return {};
}

}  // namespace stepscope::reference
