#include <numbers>

#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status erfGradient(GradientContext& g) {
  const ValueId bell = g.op("Exp", {g.neg(g.mul(g.x(0), g.x(0)))});
  g.setGradient(0, g.mul(g.dy(0), g.mul(bell, 2 * std::numbers::inv_sqrtpi)));
  return {};
}

}  // namespace

extern constexpr OpDef kErfOp{
    .name = "Erf",
    .sinceVersion = 13,
    .doc = "y = 2/sqrt(pi) integral of exp(-t^2) from 0 to x",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = erfGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
