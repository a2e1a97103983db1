#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status reduceSumSquareGradient(GradientContext& g) {
  g.setGradient(0, g.mul(reduction_rules::unreduced(g, g.mul(g.dy(0), 2)), g.x(0)));
  return {};
}

}  // namespace

extern const OpDef kReduceSumSquareOp{
    .name = "ReduceSumSquare",
    .sinceVersion = 18,
    .doc = "y = sum of x^2 over `axes`.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = reduction_rules::inferReduce,
    .gradient = reduceSumSquareGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<2>,
};

}  // namespace stepscope::ops
