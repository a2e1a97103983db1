#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status inferAbsShape(ShapeContext& c) {
  SS_TRY(shape_rules::sameAsInput0(c));
  foldContents(c, absDim);
  return {};
}

Status absGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.op("Sign", {g.x(0)})));
  return {};
}

}  // namespace

extern constexpr OpDef kAbsOp{
    .name = "Abs",
    .sinceVersion = 13,
    .doc = "y = |x|; slope 0 at 0",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferAbsShape,
    .gradient = absGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
