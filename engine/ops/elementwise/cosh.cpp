#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status coshGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.op("Sinh", {g.x(0)})));
  return {};
}

}  // namespace

extern constexpr OpDef kCoshOp{
    .name = "Cosh",
    .sinceVersion = 9,
    .doc = "y = cosh(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = coshGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
