#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferReduceSumShape(ShapeContext& c) {
  return reduction_rules::inferReduceContents(c, [](const Dim& a, const Dim& b) { return a + b; });
}

Status reduceSumGradient(GradientContext& g) {
  g.setGradient(0, g.expandTo(reduction_rules::unreduced(g, g.dy(0)), g.x(0)));
  return {};
}

}  // namespace

extern const OpDef kReduceSumOp{
    .name = "ReduceSum",
    .sinceVersion = 13,
    .doc = "y = sum of x over `axes`.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = inferReduceSumShape,
    .gradient = reduceSumGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<1>,
    .layout = {.inputs = bit(0), .channels = ChannelRule::kReducedAway},
};

}  // namespace stepscope::ops
