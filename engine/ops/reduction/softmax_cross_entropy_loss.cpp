#include "engine/ops/reduction/loss_rules.h"

namespace stepscope::ops {
namespace {

Status inferSoftmaxCrossEntropyLossShape(ShapeContext& c) {
  SS_TRY(loss_rules::inferLoss(c));
  if (c.hasOutput(1)) c.setOutput(1, loss_rules::resultType(c), c.inputShape(0));
  return {};
}

Status softmaxCrossEntropyLossGradient(GradientContext& g) {
  ValueId dx;
  if (g.dy(0).valid()) {
    const ValueId logProb = g.ensureOutput(1);
    dx =
        g.internal("SoftmaxCrossEntropyLossGrad", loss_rules::gradientInputs(g, logProb), loss_rules::gradientAttributes(g));
  }
  if (g.dy(1).valid()) {  // the log probabilities themselves were used
    const ValueId direct = g.castLike(g.internal("LogSoftmaxGrad", {g.dy(1), g.y(1)}, {{"axis", std::int64_t{1}}}), g.x(0));
    dx = dx.valid() ? g.add(dx, direct) : direct;
  }
  if (dx.valid()) g.setGradient(0, dx);
  return {};
}

constexpr OpDef crossEntropy(std::string_view domain, std::string_view name) {
  return {
      .name = name,
      .domain = domain,
      .sinceVersion = domain.empty() ? 13 : 1,
      .doc =
          "scores [N, C, ...], labels [N, ...], weights? [C] → loss = -w[l] * log softmax(scores)[l], log_prob?. "
          "`reduction` "
          "mean divides by the sum of the weights of labels that are not `ignore_index` (NaN when there are none).",
      .inputs = {2, domain.empty() ? 3u : 4u},
      .outputs = {1, 2},
      .category = OpCategory::kLoss,
      .precision = Precision::kF32,
      .hostInputs = domain.empty() ? kNoInputs : bit(3),  // ignore_index
      .inferShape = inferSoftmaxCrossEntropyLossShape,
      .gradient = softmaxCrossEntropyLossGradient,
      .differentiableInputs = bit(0),
      .differentiableOutputs = bit(0) | bit(1),
      .flops = reduction_rules::flopsPerElement<8>,
  };
}

}  // namespace

extern const OpDef kSoftmaxCrossEntropyLossOp = crossEntropy("", "SoftmaxCrossEntropyLoss");
// As above, with ignore_index as an optional input 3, labels that may be flattened, and the attribute output_type.
extern const OpDef kSoftmaxCrossEntropyLossInternalOp = crossEntropy("com.microsoft", "SoftmaxCrossEntropyLossInternal");

extern const OpDef kSoftmaxCrossEntropyLossGradOp{
    .name = "SoftmaxCrossEntropyLossGrad",
    .domain = kInternalDomain,
    .doc =
        "dy, log_prob, labels, weights?, ignore_index?, addend? → dscores = dy * w / total * (exp(log_prob) - "
        "onehot(label)), zero for labels that are ignored, + addend, another gradient of the scores; attributes reduction, "
        "ignore_index, output_type.",
    .inputs = {3, 6},
    .outputs = {1, 1},
    .category = OpCategory::kLoss,
    .precision = Precision::kF32,
    .hostInputs = bit(4),
    .inferShape = loss_rules::inferLossGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(1),
    .flops = reduction_rules::flopsPerElement<6, 1>,
};

}  // namespace stepscope::ops
