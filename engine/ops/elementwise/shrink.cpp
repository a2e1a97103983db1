#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status shrinkGradient(GradientContext& g) {
  const double lambd = g.attrs().real("lambd", 0.5f);
  const ValueId x = g.x(0);
  const ValueId outside = g.op("Or", {g.op("Less", {x, g.scalar(-lambd, x)}), g.op("Greater", {x, g.scalar(lambd, x)})});
  g.setGradient(0, keepWhere(g, outside, g.dy(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kShrinkOp{
    .name = "Shrink",
    .sinceVersion = 9,
    .doc = "y = x < -lambd ? x + bias : x > lambd ? x - bias : 0",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = shape_rules::sameAsInput0,
    .gradient = shrinkGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
