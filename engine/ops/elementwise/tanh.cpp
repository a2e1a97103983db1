#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status tanhGradient(GradientContext& g) {
  const ValueId y = g.y(0);
  g.setGradient(0, g.mul(g.dy(0), g.sub(g.scalar(1, y), g.mul(y, y))));
  return {};
}

}  // namespace

extern constexpr OpDef kTanhOp{
    .name = "Tanh",
    .sinceVersion = 13,
    .doc = "y = tanh(x); slope 1 - y^2",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = tanhGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
