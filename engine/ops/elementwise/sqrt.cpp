#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status sqrtGradient(GradientContext& g) {
  g.setGradient(0, g.div(g.mul(g.dy(0), 0.5), g.y(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kSqrtOp{
    .name = "Sqrt",
    .sinceVersion = 13,
    .doc = "y = sqrt(x); slope 1 / (2y)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = sqrtGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
