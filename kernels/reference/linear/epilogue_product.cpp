#include "kernels/dispatch.h"
#include "kernels/reference/gelu.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/product.h"

namespace stepscope::reference {

Status epilogueProduct(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const MatMulShape s, matMulShape(call.inputs[0].dims, call.inputs[1].dims, spec.attrs));
  const double alpha = spec.attrs.real("alpha", 1.0F);
  const std::string activation = spec.attrs.text("activation", ""), sums = spec.attrs.text("sums", "");
  if (!isFloating(spec.inputs[0].dtype)) return unsupported("EpilogueProduct: expected floats");
  const TensorView &a = call.inputs[0], &b = call.inputs[1];
  const auto left = [&](std::int64_t batch, std::int64_t i, std::int64_t k) {
    return elementAsDouble(a, s.aOffset(batch) + i * s.aRow + k * s.aColumn);
  };
  const auto right = [&](std::int64_t batch, std::int64_t k, std::int64_t j) {
    return elementAsDouble(b, s.bOffset(batch) + k * s.bRow + j * s.bColumn);
  };
  for (std::int64_t batch = 0; batch < s.batches(); ++batch)
    product(
        s.m, s.n, s.k, [&](std::int64_t i, std::int64_t k) { return left(batch, i, k); },
        [&](std::int64_t k, std::int64_t j) { return right(batch, k, j); },
        [&](std::int64_t i, std::int64_t j, double sum) {
          const std::int64_t place = s.yOffset(batch) + i * s.yRow + j * s.yColumn;
          double value = alpha * sum;
          if (call.inputPresent(2)) value += elementAsDouble(call.inputs[2], j);
          if (sums.empty() && call.outputPresent(1)) storeElement(call.outputs[1], place, value);
          if (activation == "Gelu") value = geluTanh(value);
          if (activation == "GeluGrad") value *= geluTanhSlope(elementAsDouble(call.inputs[3], place));
          storeElement(call.outputs[0], place, value);
        });
  if (sums.empty()) return {};
  const bool ofLeft = sums == "a";
  for (std::int64_t i = 0; i < (ofLeft ? s.m : s.n); ++i) {
    double sum = 0;
    for (std::int64_t batch = 0; batch < s.batches(); ++batch)
      for (std::int64_t k = 0; k < s.k; ++k) sum += ofLeft ? left(batch, i, k) : right(batch, k, i);
    storeElement(call.outputs[1], i, sum);
  }
  return {};
}

}  // namespace stepscope::reference
