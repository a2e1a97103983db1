#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status atanhGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  g.setGradient(0, g.div(g.dy(0), g.sub(g.scalar(1, x), g.mul(x, x))));
  return {};
}

}  // namespace

extern constexpr OpDef kAtanhOp{
    .name = "Atanh",
    .sinceVersion = 9,
    .doc = "y = artanh(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = atanhGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
