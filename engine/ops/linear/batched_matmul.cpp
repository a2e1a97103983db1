#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

bool transposes(const Attributes& attrs, std::string_view name) { return attrs.integer(name, 0) != 0; }

Status inferBatchedMatmulShape(ShapeContext& c) {
  SS_TRY(requireOneType(c, {0, 1}));
  return inferMatMul(c, 0, 1, transposes(c.attrs(), "transA"), transposes(c.attrs(), "transB"), c.inputDType(0));
}

Status batchedMatmulGradient(GradientContext& g) {
  return matMulGradient(g, transposes(g.attrs(), "transA"), transposes(g.attrs(), "transB"), g.attrs().real("alpha", 1.0f));
}

}  // namespace

constexpr OpDef kBatchedMatMulOp{
    .name = "BatchedMatMul",
    .domain = kInternalDomain,
    .doc = "y = alpha · op(a) · op(b); transA and transB exchange the last two axes, leading axes broadcast.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferBatchedMatmulShape,
    .gradient = batchedMatmulGradient,
    .differentiableInputs = bit(0) | bit(1),
    .recompute = Recompute::kCostly,
    .flops = matMulFlops,
};

}  // namespace stepscope::ops
