// Trilu: the upper (column - row >= k) or lower (column - row <= k) triangle of each matrix, zeros elsewhere.
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

Status triluKernel(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  if (x.dims.size() < 2 || x.dims != y.dims) return kernelError(spec, "shape " + dimsText(x.dims) + "; expected matrices");
  if (call.inputPresent(1) && call.inputs[1].elements() != 1) return kernelError(spec, "k must be one number");
  const bool upper = spec.attrs.integer("upper", 1) != 0;
  const std::int64_t k = call.inputPresent(1) ? elementAsInt(call.inputs[1], 0) : 0;
  const std::int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
  const std::int64_t matrices = product(x.dims, 0, x.dims.size() - 2);
  dispatchBySize(x.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* from = static_cast<const T*>(x.data);
    T* to = static_cast<T*>(y.data);
    for (std::int64_t m = 0; m < matrices; ++m)
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column, ++from, ++to)
          *to = (upper ? column - row >= k : column - row <= k) ? *from : T{};
  });
  return {};
}

}  // namespace stepscope::reference
