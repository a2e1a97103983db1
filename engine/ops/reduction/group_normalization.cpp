#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

// x, scale, bias → y; scale and bias have one element per channel (or per group, opset 18).
Status inferGroupNormalizationShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 3));
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  SS_TRY(reduction_rules::expectSameDType(c, 1, 2));
  if (c.rankKnown(0)) {
    const Shape x = *c.inputShape(0);
    if (x.size() < 2) return c.error("x has shape " + shapeText(x) + "; expected [N, C, ...]");
    const bool instance = c.node().op == "InstanceNormalization";
    const std::int64_t groups = c.attrs().integer("num_groups", 0);
    if (!instance && groups < 1) return c.error("num_groups " + std::to_string(groups) + "; expected a positive number");
    const bool perGroup =
        !instance && c.rankKnown(1) && c.inputShape(1)->size() == 1 && (*c.inputShape(1))[0] == Dim(groups);
    for (std::size_t i = 1; i <= 2; ++i)
      SS_TRY(reduction_rules::expectVector(c, i, perGroup ? Dim(groups) : x[1], i == 1 ? "scale" : "bias"));
  }
  return shape_rules::sameAsInput0(c);
}

Status groupNormalizationGradient(GradientContext& g) {
  const std::int64_t groups = g.node().op == "InstanceNormalization" ? 0 : g.attrs().integer("num_groups", 0);
  reduction_rules::normalisationGradient(g, "GroupNormalizationGrad", {g.dy(0), g.x(0), g.x(1)},
                                         {{"num_groups", groups}, {"epsilon", g.attrs().real("epsilon", 1e-5F)}});
  return {};
}

}  // namespace

extern const OpDef kGroupNormalizationOp{
    .name = "GroupNormalization",
    .sinceVersion = 21,
    .doc = "y = (x - mean) / sqrt(variance + epsilon) * scale + bias, statistics per image and group of channels.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferGroupNormalizationShape,
    .gradient = groupNormalizationGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2),
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<8>,
};

extern const OpDef kInstanceNormalizationOp{
    .name = "InstanceNormalization",
    .sinceVersion = 6,
    .doc = "y = (x - mean) / sqrt(variance + epsilon) * scale + bias, statistics per image and channel.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferGroupNormalizationShape,
    .gradient = groupNormalizationGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2),
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<8>,
};

extern const OpDef kGroupNormalizationGradOp{
    .name = "GroupNormalizationGrad",
    .domain = kInternalDomain,
    .doc = "dy, x, scale → dx?, dscale?, dbias?; attributes num_groups (0 = one group per channel) and epsilon.",
    .inputs = {3, 3},
    .outputs = {1, 3},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = [](ShapeContext& c) { return reduction_rules::inferNormalisationGrad(c, 3, 1); },
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .flops = reduction_rules::flopsPerElement<16, 1>,
};

}  // namespace stepscope::ops
