#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status eluGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId zero = g.scalar(0, x);
  const ValueId power = g.op("Exp", {g.op("Min", {x, zero})});  // clamped: the side that Where drops must not overflow
  const ValueId slope = g.mul(power, g.attrs().real("alpha", 1.0f));
  g.setGradient(0, g.where(g.op("Greater", {x, zero}), g.dy(0), g.mul(g.dy(0), slope)));
  return {};
}

}  // namespace

extern constexpr OpDef kEluOp{
    .name = "Elu",
    .sinceVersion = 6,
    .doc = "y = x > 0 ? x : alpha (exp(x) - 1)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = eluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
