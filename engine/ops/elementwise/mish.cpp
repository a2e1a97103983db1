#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status mishGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const ValueId t = g.op("Tanh", {g.op("Softplus", {x})});
  const ValueId curve = g.mul(g.mul(x, g.op("Sigmoid", {x})), g.sub(g.scalar(1, t), g.mul(t, t)));
  g.setGradient(0, g.mul(g.dy(0), g.add(t, curve)));
  return {};
}

}  // namespace

extern constexpr OpDef kMishOp{
    .name = "Mish",
    .sinceVersion = 18,
    .doc = "y = x tanh(softplus(x))",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = mishGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
