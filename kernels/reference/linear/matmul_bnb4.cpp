#include "kernels/four_bit.h"
#include "kernels/reference/linear/linear_kernels.h"
#include "kernels/reference/linear/product.h"

namespace stepscope::reference {

Status matMulBnb4(const KernelSpec& spec, const KernelCall& call) {
  const std::int64_t n = spec.attrs.integer("N", 0), k = spec.attrs.integer("K", 0),
                     block = spec.attrs.integer("block_size", 0);
  const bool transposed = spec.attrs.integer("transB", 1) != 0;
  const FourBitTable& table = fourBitTable(spec.attrs.integer("quant_type", 0));
  const auto* packed = static_cast<const std::uint8_t*>(call.inputs[1].data);
  const auto weight = [&](std::int64_t row, std::int64_t column) {
    const std::int64_t i = row * k + column;
    return static_cast<double>(table[fourBitCode(packed, i)]) * elementAsDouble(call.inputs[2], i / block);
  };
  const std::int64_t inner = transposed ? k : n, outer = transposed ? n : k;
  product(
      call.inputs[0].elements() / inner, outer, inner,
      [&](std::int64_t i, std::int64_t j) { return elementAsDouble(call.inputs[0], i * inner + j); },
      [&](std::int64_t i, std::int64_t j) { return transposed ? weight(j, i) : weight(i, j); },
      [&](std::int64_t i, std::int64_t j, double sum) { storeElement(call.outputs[0], i * outer + j, sum); });
  return {};
}

}  // namespace stepscope::reference
