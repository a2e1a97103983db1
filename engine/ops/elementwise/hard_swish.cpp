#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status hardSwishGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId inner = g.mul(g.dy(0), g.add(g.mul(x, 1.0 / 3), 0.5));
  const ValueId above = g.where(g.op("Less", {x, g.scalar(3, x)}), inner, g.dy(0));
  g.setGradient(0, dropWhere(g, g.op("LessOrEqual", {x, g.scalar(-3, x)}), above));
  return {};
}

}  // namespace

extern constexpr OpDef kHardSwishOp{
    .name = "HardSwish",
    .sinceVersion = 14,
    .doc = "y = x max(0, min(1, x / 6 + 1/2))",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = hardSwishGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
