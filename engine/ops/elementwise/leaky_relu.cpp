#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status leakyReluGradient(GradientContext& g) {
  // By x and not y: with a negative alpha the sign of y says nothing.
  const ValueId positive = g.op("Greater", {g.x(0), g.scalar(0, g.x(0))});
  g.setGradient(0, g.where(positive, g.dy(0), g.mul(g.dy(0), g.attrs().real("alpha", 0.01f))));
  return {};
}

}  // namespace

extern constexpr OpDef kLeakyReluOp{
    .name = "LeakyRelu",
    .sinceVersion = 16,
    .doc = "y = x >= 0 ? x : alpha x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = leakyReluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
