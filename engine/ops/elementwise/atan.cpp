#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status atanGradient(GradientContext& g) {
  g.setGradient(0, g.div(g.dy(0), g.add(g.mul(g.x(0), g.x(0)), 1.0)));
  return {};
}

}  // namespace

extern constexpr OpDef kAtanOp{
    .name = "Atan",
    .sinceVersion = 7,
    .doc = "y = arctan(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = atanGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
