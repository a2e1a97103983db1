#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

// Checks log_probs [T, N, C], targets [N, S] or [all], input lengths [N], target lengths [N] from input `first` on; gives N.
Result<Dim> samples(ShapeContext& c, std::size_t first) {
  SS_TRY(reduction_rules::expectFloat(c, first, "log_probs"));
  for (const std::size_t i : {first + 1, first + 2, first + 3})
    if (c.inputDType(i) != DType::kI64 && c.inputDType(i) != DType::kI32)
      return c.error("input " + std::to_string(i) + " is " + std::string(dtypeName(c.inputDType(i))) +
                     "; expected int64 or int32 (targets, lengths of inputs, lengths of targets)");
  if (!c.rankKnown(first)) return c.freshDim(0, 0);
  const Shape x = *c.inputShape(first);
  if (x.size() != 3) return c.error("log_probs has shape " + shapeText(x) + "; expected [T, N, C]");
  if (c.rankKnown(first + 1)) {
    const Shape targets = *c.inputShape(first + 1);
    if (targets.size() != 1 && targets.size() != 2)
      return c.error("targets have shape " + shapeText(targets) + "; expected [N, S], or all of them in one row");
    if (targets.size() == 2) SS_TRY(c.unify(targets[0], x[1], "samples of targets and log_probs"));
  }
  SS_TRY(reduction_rules::expectVector(c, first + 2, x[1], "lengths of inputs"));
  SS_TRY(reduction_rules::expectVector(c, first + 3, x[1], "lengths of targets"));
  return x[1];
}

Status inferCtcLossShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 4));
  SS_ASSIGN(const Dim n, samples(c, 0));
  c.setOutput(0, c.inputDType(0), Shape{n});
  return {};
}

Status ctcLossGradient(GradientContext& g) {
  g.setGradient(0, g.internal("CtcLossGrad", {g.dy(0), g.x(0), g.x(1), g.x(2), g.x(3)}, g.attrs()));
  return {};
}

Status inferCtcLossGrad(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 5));
  SS_ASSIGN(const Dim n, samples(c, 1));
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  SS_TRY(reduction_rules::expectVector(c, 0, n, "dy"));
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  return {};
}

}  // namespace

extern const OpDef kCtcLossOp{
    .name = "CtcLoss",
    .domain = kInternalDomain,
    .doc =
        "log_probs [T, N, C], targets [N, S] or [all], lengths of inputs [N], of targets [N] → -log of the sum over all "
        "alignments, [N]; attributes blank, zero_infinity, normalized.",
    .inputs = {4, 4},
    .outputs = {1, 1},
    .category = OpCategory::kLoss,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferCtcLossShape,
    .gradient = ctcLossGradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kCostly,
};

extern const OpDef kCtcLossGradOp{
    .name = "CtcLossGrad",
    .domain = kInternalDomain,
    .doc =
        "dy, log_probs, targets, lengths → dlog_probs: -dy times the share of the alignments that pass there; with "
        "attribute normalized plus dy times the probability, as PyTorch answers for the result of a log-softmax.",
    .inputs = {5, 5},
    .outputs = {1, 1},
    .category = OpCategory::kLoss,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferCtcLossGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
};

}  // namespace stepscope::ops
