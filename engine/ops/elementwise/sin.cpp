#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status sinGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.op("Cos", {g.x(0)})));
  return {};
}

}  // namespace

extern constexpr OpDef kSinOp{
    .name = "Sin",
    .sinceVersion = 7,
    .doc = "y = sin(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = sinGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
