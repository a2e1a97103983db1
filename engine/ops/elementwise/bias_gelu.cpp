#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status biasGeluGradient(GradientContext& g) {
  const bool biased = g.node().input(1).valid();
  const ValueId sum = biased ? g.add(g.x(0), g.x(1)) : g.x(0);
  const ValueId gradient = geluGradient(g, g.dy(0), sum, false);
  if (g.needs(0)) g.setGradient(0, g.reduceTo(gradient, g.x(0)));
  if (biased && g.needs(1)) g.setGradient(1, g.reduceTo(gradient, g.x(1)));
  return {};
}

}  // namespace

extern constexpr OpDef kBiasGeluOp{
    .name = "BiasGelu",
    .domain = "com.microsoft",
    .doc = "y = gelu(x + bias) in the form with erf",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatBroadcast,
    .gradient = biasGeluGradient,
    .differentiableInputs = bit(0) | bit(1),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
