#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status divGradient(GradientContext& g) {
  const ValueId quotient = g.div(g.dy(0), g.x(1));
  if (g.needs(0)) g.setGradient(0, g.reduceTo(quotient, g.x(0)));
  if (g.needs(1)) g.setGradient(1, g.neg(g.reduceTo(g.mul(quotient, g.y(0)), g.x(1))));
  return {};
}

}  // namespace

extern constexpr OpDef kDivOp{
    .name = "Div",
    .sinceVersion = 14,
    .doc = "y = a / b; integers truncate",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedBinary<divDims>,
    .gradient = divGradient,
    .differentiableInputs = bit(0) | bit(1),
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
    .layout = kVectorLayout,
};

}  // namespace stepscope::ops
