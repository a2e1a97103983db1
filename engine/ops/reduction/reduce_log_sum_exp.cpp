#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status reduceLogSumExpGradient(GradientContext& g) {
  // exp(x - y) with y = -inf would be exp(-inf + inf); against 0 it is exp(-inf) = 0.
  const ValueId isEmpty = g.op("IsInf", {g.y(0)}, {{"detect_positive", std::int64_t{0}}});
  const ValueId shift = g.where(isEmpty, g.scalar(0, g.y(0)), g.y(0));
  const ValueId share = g.op("Exp", {g.sub(g.x(0), reduction_rules::unreduced(g, shift))});
  g.setGradient(0, g.mul(reduction_rules::unreduced(g, g.dy(0)), share));
  return {};
}

}  // namespace

extern const OpDef kReduceLogSumExpOp{
    .name = "ReduceLogSumExp",
    .sinceVersion = 18,
    .doc = "y = log(sum of exp(x)) over `axes`, shifted by the maximum; a result of only -inf is -inf and has no gradient.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kReduction,
    .precision = Precision::kF32,
    .hostInputs = bit(1),
    .inferShape = reduction_rules::inferReduce,
    .gradient = reduceLogSumExpGradient,
    .differentiableInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<8>,
};

}  // namespace stepscope::ops
