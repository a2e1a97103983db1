#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status asinhGradient(GradientContext& g) {
  g.setGradient(0, g.div(g.dy(0), g.op("Sqrt", {g.add(g.mul(g.x(0), g.x(0)), 1.0)})));
  return {};
}

}  // namespace

extern constexpr OpDef kAsinhOp{
    .name = "Asinh",
    .sinceVersion = 9,
    .doc = "y = arsinh(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = asinhGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
