#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status celuGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId zero = g.scalar(0, x);
  const ValueId clamped = g.op("Min", {x, zero});  // the side that Where drops must not overflow
  const ValueId slope = g.op("Exp", {g.div(clamped, g.scalar(g.attrs().real("alpha", 1.0f), x))});
  g.setGradient(0, g.where(g.op("Greater", {x, zero}), g.dy(0), g.mul(g.dy(0), slope)));
  return {};
}

}  // namespace

extern constexpr OpDef kCeluOp{
    .name = "Celu",
    .sinceVersion = 12,
    .doc = "y = max(x, 0) + min(alpha (exp(x / alpha) - 1), 0)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = celuGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
