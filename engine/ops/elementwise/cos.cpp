#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status cosGradient(GradientContext& g) {
  g.setGradient(0, g.neg(g.mul(g.dy(0), g.op("Sin", {g.x(0)}))));
  return {};
}

}  // namespace

extern constexpr OpDef kCosOp{
    .name = "Cos",
    .sinceVersion = 7,
    .doc = "y = cos(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = cosGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
