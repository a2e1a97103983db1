#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferQlinearMatmulShape(ShapeContext& c) { return inferMatMul(c, 0, 3, false, false, c.inputDType(7)); }

double flopsOfQlinearMatmul(const OpShapes& shapes) {
  const std::array<std::span<const std::int64_t>, 2> operands{shapes.inputs[0], shapes.inputs[3]};
  return matMulFlops({operands, shapes.outputs});
}

}  // namespace

constexpr OpDef kQLinearMatMulOp{
    .name = "QLinearMatMul",
    .sinceVersion = 21,
    .doc = "y = quantize(dequantize(a) · dequantize(b)): 8-bit operands and result with scales and zero points.",
    .inputs = {8, 8},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferQlinearMatmulShape,
    .noGradientReason = "integer result",
    .recompute = Recompute::kCostly,
    .flops = flopsOfQlinearMatmul,
};

}  // namespace stepscope::ops
