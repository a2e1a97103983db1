#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status softsignGradient(GradientContext& g) {
  const ValueId base = g.add(g.op("Abs", {g.x(0)}), 1.0);
  g.setGradient(0, g.div(g.dy(0), g.mul(base, base)));
  return {};
}

}  // namespace

extern constexpr OpDef kSoftsignOp{
    .name = "Softsign",
    .doc = "y = x / (1 + |x|)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = softsignGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
