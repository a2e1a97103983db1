#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

Status thresholdedReluGradient(GradientContext& g) {
  const ValueId alpha = g.scalar(g.attrs().real("alpha", 1.0f), g.x(0));
  g.setGradient(0, keepWhere(g, g.op("Greater", {g.x(0), alpha}), g.dy(0)));
  return {};
}

}  // namespace

extern constexpr OpDef kThresholdedReluOp{
    .name = "ThresholdedRelu",
    .sinceVersion = 10,
    .doc = "y = x > alpha ? x : 0",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = floatUnary,
    .gradient = thresholdedReluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .pointwise = true,
};

}  // namespace stepscope::ops
