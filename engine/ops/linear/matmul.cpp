#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferMatmulShape(ShapeContext& c) {
  SS_TRY(requireOneType(c, {0, 1}));
  return inferMatMul(c, 0, 1, false, false, c.inputDType(0));
}
Status matmulGradient(GradientContext& g) { return matMulGradient(g, false, false, 1.0f); }

}  // namespace

constexpr OpDef kMatMulOp{
    .name = "MatMul",
    .sinceVersion = 13,
    .doc = "y = a · b with numpy's rules: rank-1 operands are vectors, leading axes broadcast.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferMatmulShape,
    .gradient = matmulGradient,
    .differentiableInputs = bit(0) | bit(1),
    .recompute = Recompute::kCostly,
    .flops = matMulFlops,
};

}  // namespace stepscope::ops
