#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status logSoftmaxGradient(GradientContext& g) {
  g.setGradient(0, g.internal("LogSoftmaxGrad", {g.dy(0), g.y(0)}, {{"axis", g.attrs().integer("axis", -1)}}));
  return {};
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
    .inferShape = reduction_rules::inferSoftmaxGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .flops = reduction_rules::flopsPerElement<6>,
};

}  // namespace stepscope::ops
