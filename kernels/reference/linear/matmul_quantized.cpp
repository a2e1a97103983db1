#include "kernels/dispatch.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/product.h"
#include "kernels/reference/linear/quantize.h"

namespace stepscope::reference {
namespace {

bool isByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

// Sums are exact: products of 8-bit numbers stay far below 2^53.
template <typename Store>
void multiply(const KernelCall& call, std::size_t a, std::size_t b, const MatMulShape& s, const PerAxis& aZero,
              const PerAxis& bZero, Store&& store) {
  for (std::int64_t batch = 0; batch < s.batches(); ++batch) {
    const std::int64_t aStart = s.aOffset(batch), bStart = s.bOffset(batch);
    product(
        s.m, s.n, s.k,
        [&](std::int64_t i, std::int64_t k) {
          return elementAsDouble(call.inputs[a], aStart + i * s.aRow + k * s.aColumn) - aZero[i];
        },
        [&](std::int64_t k, std::int64_t j) {
          return elementAsDouble(call.inputs[b], bStart + k * s.bRow + j * s.bColumn) - bZero[j];
        },
        [&](std::int64_t i, std::int64_t j, double sum) { store(batch * s.m * s.n + i * s.n + j, i, j, sum); });
  }
}

}  // namespace

Status matMulInteger(const KernelSpec& spec, const KernelCall& call) {
  if (!isByte(spec.inputs[0].dtype) || !isByte(spec.inputs[1].dtype))
    return unsupported("MatMulInteger: expected int8 or uint8");
  SS_ASSIGN(const MatMulShape s, matMulShape(call.inputs[0].dims, call.inputs[1].dims));
  SS_ASSIGN(const PerAxis aZero, PerAxis::read(call, 2, s.m, 0));
  SS_ASSIGN(const PerAxis bZero, PerAxis::read(call, 3, s.n, 0));
  auto* y = static_cast<std::int32_t*>(call.outputs[0].data);
  multiply(call, 0, 1, s, aZero, bZero, [&](std::int64_t index, std::int64_t, std::int64_t, double sum) {
    y[index] = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)));
  });
  return {};
}

Status qLinearMatMul(const KernelSpec& spec, const KernelCall& call) {
  if (!isByte(spec.inputs[0].dtype) || !isByte(spec.inputs[3].dtype) || !isByte(spec.outputs[0].dtype))
    return unsupported("QLinearMatMul: expected int8 or uint8");
  SS_ASSIGN(const MatMulShape s, matMulShape(call.inputs[0].dims, call.inputs[3].dims));
  SS_ASSIGN(const PerAxis aScale, PerAxis::read(call, 1, s.m, 1));
  SS_ASSIGN(const PerAxis aZero, PerAxis::read(call, 2, s.m, 0));
  SS_ASSIGN(const PerAxis bScale, PerAxis::read(call, 4, s.n, 1));
  SS_ASSIGN(const PerAxis bZero, PerAxis::read(call, 5, s.n, 0));
  SS_ASSIGN(const PerAxis yScale, PerAxis::read(call, 6, s.m, 1));
  SS_ASSIGN(const PerAxis yZero, PerAxis::read(call, 7, s.m, 0));
  multiply(call, 0, 3, s, aZero, bZero, [&](std::int64_t index, std::int64_t i, std::int64_t j, double sum) {
    storeElement(call.outputs[0], index,
                 quantizeSaturated(sum * aScale[i] * bScale[j], yScale[i], yZero[i], spec.outputs[0].dtype));
  });
  return {};
}

}  // namespace stepscope::reference
