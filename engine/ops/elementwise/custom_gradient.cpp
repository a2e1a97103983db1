#include "engine/ops/elementwise/common.h"
#include "engine/ops/replay_context.h"

namespace stepscope::ops {
namespace {

Status inferCustomGradientShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  c.setOutputType(0, c.inputType(0));
  return {};
}

// dx = d with dy in place of g. What the model wrote as the gradient counts, not the slope of y.
Status customGradientGradient(GradientContext& g) {
  g.setGradient(0, g.dy(0));
  if (!g.needs(2)) return {};
  auto* replay = dynamic_cast<ReplayContext*>(&g);
  if (replay == nullptr || !g.x(1) || !g.x(3)) return g.error("expected a gradient phase and four inputs");
  const ValueId dx = replay->replayed(g.x(3), g.x(1), g.castLike(g.dy(0), g.x(1)));
  g.setGradient(2, g.castLike(dx, g.x(2)));
  return {};
}

}  // namespace

extern constexpr OpDef kCustomGradientOp{
    .name = "CustomGradient",
    .domain = kInternalDomain,
    .doc = "y, the same memory; dy goes on to y, and to x goes what d is with dy in place of g (autograd.Function, hooks)",
    .inputs = {1, 4},
    .outputs = {1, 1},
    .category = OpCategory::kElementwise,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferCustomGradientShape,
    .gradient = customGradientGradient,
    .differentiableInputs = bit(0) | bit(2),
    .inPlaceInputs = bit(0),
    .view = true,
};

}  // namespace stepscope::ops
