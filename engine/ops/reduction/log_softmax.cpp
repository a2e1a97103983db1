#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status logSoftmaxGradient(GradientContext& g) {
  g.setGradient(0, g.internal("LogSoftmaxGrad", {g.dy(0), g.y(0)}, {{"axis", g.attrs().integer("axis", -1)}}));
  return {};
}

Status inferLogSoftmaxGrad(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  if (c.rankKnown(0) && c.rankKnown(1)) SS_TRY(c.unifyShapes(*c.inputShape(0), *c.inputShape(1), "dy and y"));
  return reduction_rules::inferAlongAxis(c);
}

}  // namespace

extern const OpDef kLogSoftmaxOp{
    .name = "LogSoftmax",
    .sinceVersion = 13,
    .doc = "y = x - log(sum(exp(x))) along `axis` (-1).",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = reduction_rules::inferAlongAxis,
    .gradient = logSoftmaxGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<8>,
};

extern const OpDef kLogSoftmaxGradOp{
    .name = "LogSoftmaxGrad",
    .domain = kInternalDomain,
    .doc = "dy, y → dx = dy - exp(y) * sum(dy) along `axis`.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferLogSoftmaxGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .flops = reduction_rules::flopsPerElement<6>,
};

}  // namespace stepscope::ops
