#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status asinGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId root = g.op("Sqrt", {g.sub(g.scalar(1, x), g.mul(x, x))});
  g.setGradient(0, g.div(g.dy(0), root));
  return {};
}

}  // namespace

extern constexpr OpDef kAsinOp{
    .name = "Asin",
    .sinceVersion = 7,
    .doc = "y = arcsin(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = asinGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
