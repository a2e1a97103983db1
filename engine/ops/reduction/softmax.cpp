#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status softmaxGradient(GradientContext& g) {
  g.setGradient(0, g.internal("SoftmaxGrad", {g.dy(0), g.y(0)}, {{"axis", g.attrs().integer("axis", -1)}}));
  return {};
}

}  // namespace

extern const OpDef kSoftmaxOp{
    .name = "Softmax",
    .sinceVersion = 13,
    .doc = "y = exp(x - max(x)) / sum(exp(x - max(x))) along `axis` (-1); NaN where a line is only -inf.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = reduction_rules::inferAlongAxis,
    .gradient = softmaxGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<8>,
};

extern const OpDef kSoftmaxGradOp{
    .name = "SoftmaxGrad",
    .domain = kInternalDomain,
    .doc = "dy, y → dx = y * (dy - sum(dy * y)) along `axis`.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kActivation,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = reduction_rules::inferSoftmaxGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .flops = reduction_rules::flopsPerElement<4>,
};

}  // namespace stepscope::ops
