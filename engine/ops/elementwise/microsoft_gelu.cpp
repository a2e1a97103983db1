#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status microsoftGeluGradient(GradientContext& g) {
  g.setGradient(0, geluGradient(g, g.dy(0), g.x(0), false));
  return {};
}

}  // namespace

extern constexpr OpDef kMicrosoftGeluOp{
    .name = "Gelu",
    .domain = "com.microsoft",
    .doc = "y = x Phi(x), the form with erf",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = microsoftGeluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
