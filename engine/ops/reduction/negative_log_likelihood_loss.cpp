#include "engine/ops/reduction/loss_rules.h"

namespace stepscope::ops {
namespace {

Status negativeLogLikelihoodLossGradient(GradientContext& g) {
  Attributes attrs = loss_rules::gradientAttributes(g);
  attrs.set("output_type", static_cast<std::int64_t>(g.dtype(g.x(0))));
  const ValueId shape = g.shapeOf(g.x(0));
  g.setGradient(0, g.internal("NegativeLogLikelihoodLossGrad", loss_rules::gradientInputs(g, shape), std::move(attrs)));
  return {};
}

Status inferNegativeLogLikelihoodLossGrad(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 3));
  std::optional<Shape> shape = c.contents(1);
  if (!shape)
    if (const auto numbers = c.integers(1)) shape = shapeOf(*numbers);
  const auto dtype = dtypeFromOnnx(static_cast<int>(c.attrs().integer("output_type", 0)));
  c.setOutput(0, dtype ? *dtype : c.inputDType(0), shape);
  return {};
}

constexpr OpDef negativeLogLikelihood(std::string_view domain, std::string_view name) {
  return {
      .name = name,
      .domain = domain,
      .sinceVersion = domain.empty() ? 13 : 1,
      .doc =
          "log probabilities [N, C, ...], labels [N, ...], weights? [C] → loss = -w[l] * x[l]; `reduction` and "
          "`ignore_index` as "
          "SoftmaxCrossEntropyLoss.",
      .inputs = {2, domain.empty() ? 3u : 4u},
      .outputs = {1, 1},
      .category = OpCategory::kLoss,
      .precision = Precision::kF32,
      .hostInputs = domain.empty() ? kNoInputs : bit(3),  // ignore_index
      .inferShape = loss_rules::inferLoss,
      .gradient = negativeLogLikelihoodLossGradient,
      .differentiableInputs = bit(0),
  };
}

}  // namespace

extern const OpDef kNegativeLogLikelihoodLossOp = negativeLogLikelihood("", "NegativeLogLikelihoodLoss");
// As above, with ignore_index as an optional input 3.
extern const OpDef kNegativeLogLikelihoodLossInternalOp =
    negativeLogLikelihood("com.microsoft", "NegativeLogLikelihoodLossInternal");

extern const OpDef kNegativeLogLikelihoodLossGradOp{
    .name = "NegativeLogLikelihoodLossGrad",
    .domain = kInternalDomain,
    .doc =
        "dy, shape, labels, weights?, ignore_index? → dx of `shape` and type `output_type`: -dy * w / total at the label, "
        "else 0.",
    .inputs = {3, 5},
    .outputs = {1, 1},
    .category = OpCategory::kLoss,
    .precision = Precision::kF32,
    .hostInputs = bit(1) | bit(4),
    .inferShape = inferNegativeLogLikelihoodLossGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
};

}  // namespace stepscope::ops
