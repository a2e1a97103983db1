#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status reduceLogSumGradient(GradientContext& g) {
  const ValueId perElement = g.mul(g.dy(0), g.op("Exp", {g.neg(g.y(0))}));
  g.setGradient(0, g.expandTo(reduction_rules::unreduced(g, perElement), g.x(0)));
  return {};
}

}  // namespace

extern const OpDef kReduceLogSumOp{
    .name = "ReduceLogSum",
    .sinceVersion = 18,
    .doc = "y = log(sum of x) over `axes`.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = reduction_rules::inferReduce,
    .gradient = reduceLogSumGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<1>,
};

}  // namespace stepscope::ops
