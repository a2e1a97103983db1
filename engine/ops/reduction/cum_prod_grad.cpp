#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferCumProdGradShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 3));
  return shape_rules::sameAsInput0(c);
}

}  // namespace

extern const OpDef kCumProdGradOp{
    .name = "CumProdGrad",
    .domain = kInternalDomain,
    .doc = "The gradient of CumProd: dy, x, axis → dx; attributes as there.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(2),
    .inferShape = inferCumProdGradShape,
    .noGradientReason = "gradient op",
};

}  // namespace stepscope::ops
