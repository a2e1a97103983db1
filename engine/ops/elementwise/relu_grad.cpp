#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferReluGradShape(ShapeContext& c) {
  SS_TRY(requireSameTypes(c, 0));
  if (c.rankKnown(0) && c.rankKnown(1)) SS_TRY(c.unifyShapes(*c.inputShape(0), *c.inputShape(1), "dy and y"));
  return shape_rules::sameAsInput0(c);
}

}  // namespace

extern constexpr OpDef kReluGradOp{
    .name = "ReluGrad",
    .domain = kInternalDomain,
    .doc = "dy, y → dx = y <= 0 ? 0 : dy, with the result y of Relu; a NaN in y lets dy pass",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferReluGradShape,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
