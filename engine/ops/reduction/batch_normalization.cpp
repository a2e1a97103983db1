#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

// x, scale, b, mean, var → y, running_mean?, running_var?, saved_mean?, saved_inv_std?
Status inferBatchNormalizationShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 5));
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  SS_TRY(reduction_rules::expectSameDType(c, 1, 2));
  Dim channels = 1;
  std::optional<Shape> perChannel;
  if (c.rankKnown(0)) {
    const Shape x = *c.inputShape(0);
    if (x.empty()) return c.error("x is a scalar; expected [N, C, ...]");
    if (x.size() > 1) channels = x[1];
    constexpr std::string_view kNames[] = {"x", "scale", "b", "mean", "var"};
    for (std::size_t i = 1; i <= 4; ++i) {
      SS_TRY(reduction_rules::expectFloat(c, i, kNames[i]));
      SS_TRY(reduction_rules::expectVector(c, i, channels, kNames[i]));
    }
    perChannel = Shape{channels};
  }
  SS_TRY(shape_rules::sameAsInput0(c));
  if (c.hasOutput(1)) c.setOutput(1, c.inputDType(3), perChannel);
  if (c.hasOutput(2)) c.setOutput(2, c.inputDType(4), perChannel);
  for (std::size_t i = 3; i <= 4; ++i)
    if (c.hasOutput(i)) c.setOutput(i, reduction_rules::statisticsType(c), perChannel);
  return {};
}

Status batchNormalizationGradient(GradientContext& g) {
  const bool training = g.attrs().integer("training_mode", 0) != 0;
  const ValueId mean = g.ensureOutput(3), inverse = g.ensureOutput(4);
  if (!training && (g.needs(3) || g.needs(4))) {
    // Given statistics that lead to a trained value. They are part of every y of their channel, so their gradients are made
    // of the sums that d scale and d bias are: d mean = -d bias scale inv, d var = -1/2 d scale scale inv^2.
    const auto d = g.emit(kInternalDomain, "BatchNormalizationGrad", {g.dy(0), g.x(0), g.x(1), mean, inverse}, 3,
                          {{"training_mode", std::int64_t{0}}});
    for (std::size_t i = 0; i < 3; ++i)
      if (g.needs(i)) g.setGradient(i, d[i]);
    const ValueId factor = g.mul(g.castLike(g.x(1), inverse), inverse);
    if (g.needs(3)) g.setGradient(3, g.castLike(g.neg(g.mul(g.castLike(d[2], inverse), factor)), g.x(3)));
    if (g.needs(4)) {
      const ValueId product = g.mul(g.mul(g.castLike(d[1], inverse), factor), inverse);
      g.setGradient(4, g.castLike(g.mul(product, -0.5), g.x(4)));
    }
    return {};
  }
  // Frozen, d x does not depend on x: without d scale x need not be kept.
  const ValueId x = training || g.needs(1) ? g.x(0) : ValueId{};
  reduction_rules::normalisationGradient(g, "BatchNormalizationGrad", {g.dy(0), x, g.x(1), mean, inverse},
                                         {{"training_mode", std::int64_t{training}}});
  return {};
}

// The same operands, then z?
Status inferFused(ShapeContext& c) {
  SS_TRY(reduction_rules::expectSameDType(c, 0, 5));
  if (c.hasInput(5) && c.rankKnown(0) && c.rankKnown(5))
    SS_TRY(c.unifyShapes(*c.inputShape(0), *c.inputShape(5), "x and z"));
  return inferBatchNormalizationShape(c);
}

Status inferBatchNormalizationGrad(ShapeContext& c) {
  for (const std::size_t i : {0, 2, 3, 4})
    if (!c.hasInput(i)) return c.error("input " + std::to_string(i) + " is absent; expected dy, x?, scale, mean, inv_std");
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  if (c.rankKnown(0) && c.rankKnown(1)) SS_TRY(c.unifyShapes(*c.inputShape(0), *c.inputShape(1), "dy and x"));
  if (c.hasOutput(0)) c.setOutput(0, c.inputDType(0), c.inputShape(0));
  for (std::size_t i = 1; i <= 2; ++i)
    if (c.hasOutput(i)) c.setOutput(i, c.inputDType(2), c.inputShape(2));
  return {};
}

Status inferFusedGrad(ShapeContext& c) {
  SS_TRY(inferBatchNormalizationGrad(c));
  if (!c.hasInput(5)) return c.error("input 5 is absent; expected dy, x?, scale, mean, inv_std, y");
  SS_TRY(reduction_rules::expectSameDType(c, 0, 5));
  if (c.rankKnown(0) && c.rankKnown(5)) SS_TRY(c.unifyShapes(*c.inputShape(0), *c.inputShape(5), "dy and y"));
  if (c.hasOutput(3)) c.setOutput(3, c.inputDType(0), c.inputShape(0));
  return {};
}

}  // namespace

// With training_mode the outputs 1 and 2 are writes to the state of the inputs 3 and 4: whoever recomputes must not repeat
// them.
extern const OpDef kBatchNormalizationOp{
    .name = "BatchNormalization",
    .sinceVersion = 15,
    .doc =
        "y = (x - mean) / sqrt(var + epsilon) * scale + b per channel. training_mode: statistics of the batch, and running "
        "= old * momentum + batch * (1 - momentum) with the population variance (attribute sample_variance: that of a "
        "sample), written to state and never repeated by recompute; else the inputs mean and var. Outputs 3, 4: the mean "
        "and 1/sqrt(var + epsilon) used.",
    .inputs = {5, 5},
    .outputs = {1, 5},
    .category = OpCategory::kNormalization,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferBatchNormalizationShape,
    .gradient = batchNormalizationGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2) | bit(3) | bit(4),
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kCostly,
    .flops = reduction_rules::flopsPerElement<8>,
    .layout = {.inputs = bit(0), .outputs = bit(0), .together = true},
};

extern const OpDef kBatchNormalizationGradOp{
    .name = "BatchNormalizationGrad",
    .domain = kInternalDomain,
    .doc =
        "dy, x?, scale, mean, inv_std → dx?, dscale?, dbias?; training_mode (1): mean and inv_std are those of x, so dx "
        "goes "
        "through them; 0: they are given, and x is only needed for dscale.",
    .inputs = {5, 5},
    .outputs = {1, 3},
    .absentInputs = bit(1),
    .category = OpCategory::kNormalization,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferBatchNormalizationGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .flops = reduction_rules::flopsPerElement<12>,
    .layout = {.inputs = bit(0) | bit(1), .outputs = bit(0), .together = true},
};

extern const OpDef kFusedBatchNormalizationOp{
    .name = "FusedBatchNormalization",
    .domain = kInternalDomain,
    .doc =
        "x, scale, b, mean, var, z? → y, running_mean?, running_var?, saved_mean?, saved_inv_std?: y = BatchNormalization + "
        "z, "
        "then max(., 0) with attribute relu (0)",
    .inputs = {5, 6},
    .outputs = {1, 5},
    .category = OpCategory::kNormalization,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferFused,
    .noGradientReason = "made by fuse_batch_norm when the gradient is there",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(5),
    .recompute = Recompute::kCostly,
    .flops = reduction_rules::flopsPerElement<9>,
    .layout = {.inputs = bit(0) | bit(5), .outputs = bit(0), .together = true},
};

extern const OpDef kFusedBatchNormalizationGradOp{
    .name = "FusedBatchNormalizationGrad",
    .domain = kInternalDomain,
    .doc =
        "dy, x?, scale, mean, inv_std, y → dx?, dscale?, dbias?, g?: g = ReluGrad(dy, y), the rest as "
        "BatchNormalizationGrad of g",
    .inputs = {6, 6},
    .outputs = {1, 4},
    .absentInputs = bit(1),
    .category = OpCategory::kNormalization,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferFusedGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .flops = reduction_rules::flopsPerElement<13>,
    .layout = {.inputs = bit(0) | bit(1) | bit(5), .outputs = bit(0) | bit(3), .together = true},
};

}  // namespace stepscope::ops
