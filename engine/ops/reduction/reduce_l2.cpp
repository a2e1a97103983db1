#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status reduceL2Gradient(GradientContext& g) {
  // Where y is 0 all of x is, so any divisor gives 0.
  const ValueId isZero = g.op("Equal", {g.y(0), g.scalar(0, g.y(0))});
  const ValueId divisor = g.where(isZero, g.scalar(1, g.y(0)), g.y(0));
  g.setGradient(0, g.mul(g.x(0), reduction_rules::unreduced(g, g.div(g.dy(0), divisor))));
  return {};
}

}  // namespace

extern const OpDef kReduceL2Op{
    .name = "ReduceL2",
    .sinceVersion = 18,
    .doc = "y = sqrt(sum of x^2) over `axes`; the gradient is 0 where y = 0.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = reduction_rules::inferReduce,
    .gradient = reduceL2Gradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<2>,
};

}  // namespace stepscope::ops
