#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status quickGeluGradient(GradientContext& g) {
  const ValueId x = g.x(0);
  const double alpha = g.attrs().real("alpha", 1.702f);
  const ValueId s = g.op("Sigmoid", {g.mul(x, alpha)});
  const ValueId curve = g.mul(g.mul(g.mul(x, alpha), s), g.sub(g.scalar(1, x), s));
  g.setGradient(0, g.mul(g.dy(0), g.add(s, curve)));
  return {};
}

}  // namespace

extern constexpr OpDef kQuickGeluOp{
    .name = "QuickGelu",
    .domain = "com.microsoft",
    .doc = "y = x sigmoid(alpha x)",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = quickGeluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
    .layout = kSharedLayout,
};

}  // namespace stepscope::ops
