// NonZero: the indices of elements that are not zero, [rank, count], in row-major order of the elements.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status nonZeroKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  // A scalar is treated as a vector of one element, as onnx.reference does, but its rank 0 leaves no index rows.
  const std::size_t rank = x.dims.size();
  SS_TRY(checkRank(spec, rank));
  Status status;
  const bool known = dispatchFixed(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* values = static_cast<const T*>(x.data);
    const std::int64_t total = x.elements();
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < total; ++i) count += values[i] != T(0) ? 1 : 0;
    status = prepareOutput(spec, call, 0, {static_cast<std::int64_t>(rank), count});
    if (!status) return;
    auto* out = static_cast<std::int64_t*>(call.outputs[0].data);
    Extents index{};
    std::int64_t n = 0;
    for (std::int64_t i = 0; i < total; ++i) {
      if (values[i] != T(0)) {
        for (std::size_t a = 0; a < rank; ++a) out[static_cast<std::int64_t>(a) * count + n] = index[a];
        ++n;
      }
      for (std::size_t a = rank; a-- > 0;) {
        if (++index[a] < x.dims[a]) break;
        index[a] = 0;
      }
    }
  });
  if (!known) return kernelError(spec, "type " + std::string(dtypeName(x.dtype)) + " has no zero");
  return status;
}

}  // namespace stepscope::reference
