#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/product.h"

namespace stepscope::reference {
namespace {

Status multiply(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const MatMulShape s, matMulShape(call.inputs[0].dims, call.inputs[1].dims, spec.attrs));
  const double alpha = spec.attrs.real("alpha", 1.0f);
  const bool hasBias = call.inputPresent(2), hasAddend = call.inputPresent(3),
             relu = spec.attrs.text("activation", "") == "Relu";
  const bool known = dispatchNumeric(spec.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* left = static_cast<const T*>(call.inputs[0].data);
    const T* right = static_cast<const T*>(call.inputs[1].data);
    T* y = static_cast<T*>(call.outputs[0].data);
    const std::int64_t batches = s.batches();
    for (std::int64_t batch = 0; batch < batches; ++batch) {
      const T* a = left + s.aOffset(batch);
      const T* b = right + s.bOffset(batch);
      T* out = y + s.yOffset(batch);
      product(
          s.m, s.n, s.k, [&](std::int64_t i, std::int64_t k) { return summand(a[i * s.aRow + k * s.aColumn]); },
          [&](std::int64_t k, std::int64_t j) { return summand(b[k * s.bRow + j * s.bColumn]); },
          [&](std::int64_t i, std::int64_t j, auto sum) {
            T& element = out[i * s.yRow + j * s.yColumn];
            if constexpr (std::is_integral_v<T>) {
              element = static_cast<T>(sum);
            } else {
              double value = sum * alpha;
              if (hasBias) value += static_cast<double>(static_cast<const T*>(call.inputs[2].data)[j]);
              if (hasAddend) value += static_cast<double>(static_cast<const T*>(call.inputs[3].data)[&element - y]);
              element = static_cast<T>(relu && value < 0 ? 0 : value);
            }
          });
    }
  });
  if (!known)
    return unsupported(spec.op + ": dtype " + std::string(dtypeName(spec.inputs[0].dtype)) + "; expected a number");
  return {};
}

}  // namespace

Status matMul(const KernelSpec& spec, const KernelCall& call) { return multiply(spec, call); }

}  // namespace stepscope::reference
