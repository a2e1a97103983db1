#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status expGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.y(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kExpOp{
    .name = "Exp",
    .sinceVersion = 13,
    .doc = "y = exp(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = expGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
