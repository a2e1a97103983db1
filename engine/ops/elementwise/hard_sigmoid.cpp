#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status hardSigmoidGradient(GradientContext& g) {
  const ValueId y = g.y(0);
  const ValueId inside = g.op("And", {g.op("Greater", {y, g.scalar(0, y)}), g.op("Less", {y, g.scalar(1, y)})});
  g.setGradient(0, keepWhere(g, inside, g.mul(g.dy(0), g.attrs().real("alpha", 0.2f))));
  return {};
}

}  // namespace

extern constexpr OpDef kHardSigmoidOp{
    .name = "HardSigmoid",
    .sinceVersion = 6,
    .doc = "y = max(0, min(1, alpha x + beta)); slope 0 at the kinks",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = hardSigmoidGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
