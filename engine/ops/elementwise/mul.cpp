#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status mulGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.reduceTo(g.mul(g.dy(0), g.x(1)), g.x(0)));
  if (g.needs(1)) g.setGradient(1, g.reduceTo(g.mul(g.dy(0), g.x(0)), g.x(1)));
  return {};
}

}  // namespace

extern constexpr OpDef kMulOp{
    .name = "Mul",
    .sinceVersion = 14,
    .doc = "y = a * b",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = foldedBinary<mulDims>,
    .gradient = mulGradient,
    .differentiableInputs = bit(0) | bit(1),
    .inPlaceInputs = bit(0) | bit(1),
    .pointwise = true,
    .layout = kVectorLayout,
};

}  // namespace stepscope::ops
