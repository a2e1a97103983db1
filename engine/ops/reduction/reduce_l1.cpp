#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status reduceL1Gradient(GradientContext& g) {
  g.setGradient(0, g.mul(reduction_rules::unreduced(g, g.dy(0)), g.op("Sign", {g.x(0)})));
  return {};
}

}  // namespace

extern const OpDef kReduceL1Op{
    .name = "ReduceL1",
    .sinceVersion = 18,
    .doc = "y = sum of |x| over `axes`.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = reduction_rules::inferReduce,
    .gradient = reduceL1Gradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<2>,
};

}  // namespace stepscope::ops
