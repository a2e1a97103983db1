#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status acoshGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  g.setGradient(0, g.div(g.dy(0), g.mul(g.op("Sqrt", {g.add(x, -1.0)}), g.op("Sqrt", {g.add(x, 1.0)}))));
  return {};
}

}  // namespace

extern constexpr OpDef kAcoshOp{
    .name = "Acosh",
    .sinceVersion = 9,
    .doc = "y = arcosh(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = acoshGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
