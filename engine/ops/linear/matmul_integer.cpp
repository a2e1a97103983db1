#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferMatmulIntegerShape(ShapeContext& c) { return inferMatMul(c, 0, 1, false, false, DType::kI32); }

}  // namespace

constexpr OpDef kMatMulIntegerOp{
    .name = "MatMulInteger",
    .sinceVersion = 10,
    .doc = "y = (a - a_zero_point) · (b - b_zero_point) in int32.",
    .inputs = {2, 4},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferMatmulIntegerShape,
    .noGradientReason = "integer result",
    .recompute = Recompute::kCostly,
    .flops = matMulFlops,
};

}  // namespace stepscope::ops
