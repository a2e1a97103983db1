#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status seluGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId zero = g.scalar(0, x);
  const double alpha = g.attrs().real("alpha", 1.67326319217681884765625f);
  const double gamma = g.attrs().real("gamma", 1.05070102214813232421875f);
  const ValueId power = g.op("Exp", {g.op("Min", {x, zero})});  // clamped: the side that Where drops must not overflow
  const ValueId slope = g.where(g.op("Greater", {x, zero}), g.scalar(gamma, x), g.mul(power, alpha * gamma));
  g.setGradient(0, g.mul(g.dy(0), slope));
  return {};
}

}  // namespace

extern constexpr OpDef kSeluOp{
    .name = "Selu",
    .sinceVersion = 6,
    .doc = "y = gamma (x > 0 ? x : alpha (exp(x) - 1))",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = seluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
