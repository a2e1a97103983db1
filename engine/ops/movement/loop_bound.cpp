#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferLoopBoundShape(ShapeContext& c) {
  if (c.inputDType(0) != DType::kBool && c.inputDType(0) != DType::kUndefined) return c.error("input 0 is not bool");
  if (const auto on = c.integers(0); on && on->size() == 1 && on->front() != 0)
    return c.error("the loop goes on after " + std::to_string(c.attrs().integer("iterations", 0)) +
                   " iterations; expected at most as many as the option loop.max_iterations says; hint: --set "
                   "loop.max_iterations=N, or a shorter batch");
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  if (const auto contents = c.contents(1)) c.setContents(0, *contents);
  return {};
}

Status loopBoundGradient(GradientContext& g) {
  g.setGradient(1, g.dy(0));
  return {};
}

}  // namespace

constexpr OpDef kLoopBoundOp{
    .name = "LoopBound",
    .domain = kInternalDomain,
    .doc = "y = x; an error when the condition holds: a loop goes on after the `iterations` that were written out",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kControl,
    .precision = Precision::kFollows,
    .hostInputs = bit(0),
    .inferShape = inferLoopBoundShape,
    .gradient = loopBoundGradient,
    .differentiableInputs = bit(1),
    .inPlaceInputs = bit(1),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
