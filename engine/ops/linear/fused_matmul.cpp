#include "engine/ops/linear/matmul_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferFusedMatmulShape(ShapeContext& c) {
  for (const char* name : {"transBatchA", "transBatchB"})
    if (c.attrs().integer(name, 0) != 0)
      return unsupported(c.node().label() + ": attribute '" + name +
                         "' is 1; expected 0, write a Transpose before the product");
  SS_TRY(requireOneType(c, {0, 1}));
  return inferMatMul(c, 0, 1, c.attrs().integer("transA", 0) != 0, c.attrs().integer("transB", 0) != 0, c.inputDType(0));
}

Status fusedMatmulGradient(GradientContext& g) {
  return matMulGradient(g, g.attrs().integer("transA", 0) != 0, g.attrs().integer("transB", 0) != 0,
                        g.attrs().real("alpha", 1.0f));
}

}  // namespace

constexpr OpDef kFusedMatMulOp{
    .name = "FusedMatMul",
    .domain = "com.microsoft",
    .doc = "y = alpha · op(a) · op(b); transA and transB exchange the last two axes.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMatmul,
    .precision = Precision::kLow,
    .hostInputs = kNoInputs,
    .inferShape = inferFusedMatmulShape,
    .gradient = fusedMatmulGradient,
    .differentiableInputs = bit(0) | bit(1),
    .recompute = Recompute::kCostly,
    .flops = matMulFlops,
};

}  // namespace stepscope::ops
