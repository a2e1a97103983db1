#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/product.h"

namespace stepscope::reference {

Status gemm(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const MatMulShape s, matMulShape(call.inputs[0].dims, call.inputs[1].dims, spec.attrs));
  const double alpha = spec.attrs.real("alpha", 1.0f), beta = spec.attrs.real("beta", 1.0f);
  std::int64_t cRow = 0, cColumn = 0;
  if (call.inputPresent(2)) {
    const Dims& dims = call.inputs[2].dims;
    const Dims strides = rowMajorStrides(dims);
    if (!dims.empty() && dims.back() != 1) cColumn = strides.back();
    if (dims.size() > 1 && dims[0] != 1) cRow = strides[0];
  }
  const bool known = dispatchNumeric(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* a = static_cast<const T*>(call.inputs[0].data);
    const T* b = static_cast<const T*>(call.inputs[1].data);
    const T* c = call.inputPresent(2) ? static_cast<const T*>(call.inputs[2].data) : nullptr;
    T* y = static_cast<T*>(call.outputs[0].data);
    product(
        s.m, s.n, s.k, [&](std::int64_t i, std::int64_t k) { return static_cast<double>(a[i * s.aRow + k * s.aColumn]); },
        [&](std::int64_t k, std::int64_t j) { return static_cast<double>(b[k * s.bRow + j * s.bColumn]); },
        [&](std::int64_t i, std::int64_t j, double sum) {
          double value = alpha * sum;
          if (c != nullptr && beta != 0) value += beta * static_cast<double>(c[i * cRow + j * cColumn]);
          y[i * s.n + j] = static_cast<T>(value);
        });
  });
  if (!known) return unsupported("Gemm: dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + "; expected a number");
  return {};
}

}  // namespace stepscope::reference
