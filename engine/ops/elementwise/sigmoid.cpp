#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status sigmoidGradient(GradientContext& g) {
  const ValueId y = g.y(0);
  g.setGradient(0, g.mul(g.dy(0), g.mul(y, g.sub(g.scalar(1, y), y))));
  return {};
}

}  // namespace

extern constexpr OpDef kSigmoidOp{
    .name = "Sigmoid",
    .sinceVersion = 13,
    .doc = "y = 1 / (1 + exp(-x)); slope y (1 - y)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = sigmoidGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
