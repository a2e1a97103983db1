#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status logGradient(GradientContext& g) {
  g.setGradient(0, g.div(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kLogOp{
    .name = "Log",
    .sinceVersion = 13,
    .doc = "y = ln(x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = logGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
