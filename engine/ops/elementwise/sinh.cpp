#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status sinhGradient(GradientContext& g) {
  g.setGradient(0, g.mul(g.dy(0), g.op("Cosh", {g.x(0)})));
  return {};
}

}  // namespace

extern constexpr OpDef kSinhOp{
    .name = "Sinh",
    .sinceVersion = 9,
    .doc = "y = sinh(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = sinhGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
