#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferLayerNormalizationShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  SS_TRY(reduction_rules::expectSameDType(c, 1, 2));
  c.setOutput(0, c.inputDType(0), c.inputShape(0));
  std::optional<Shape> statistics;
  if (c.rankKnown(0)) {
    const Shape x = *c.inputShape(0);
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", -1), x));
    SS_TRY(reduction_rules::expectNormalised(c, 1, x, axis, "scale"));
    SS_TRY(reduction_rules::expectNormalised(c, 2, x, axis, "bias"));
    statistics = x;
    for (std::size_t i = axis; i < x.size(); ++i) (*statistics)[i] = 1;
  }
  for (std::size_t i = 1; i <= 2; ++i)
    if (c.hasOutput(i)) c.setOutput(i, reduction_rules::statisticsType(c), statistics);
  return {};
}

Status layerNormalizationGradient(GradientContext& g) {
  const ValueId mean = g.ensureOutput(1), inverse = g.ensureOutput(2);
  const std::vector<ValueId> inputs{g.dy(0), g.x(0), g.x(1), mean, inverse};
  const Attributes attrs{{"axis", g.attrs().integer("axis", -1)}};
  const ValueId more = reduction_rules::statisticsGradient(g, mean, inverse, g.dy(1), g.dy(2));
  const auto& scaleShape = g.shape(g.x(1));
  if (!g.dy(0).valid() || !g.x(2).valid() || !g.needs(2) || (scaleShape && scaleShape == g.shape(g.x(2)))) {
    reduction_rules::normalisationGradient(g, "LayerNormalizationGrad", inputs, attrs, more);
    return {};
  }
  // A bias that broadcasts otherwise than scale is not a by-product of the gradient op.
  g.setGradient(2, g.reduceTo(g.dy(0), g.x(2)));
  if (!g.needs(0) && !g.needs(1)) return {};
  const auto gradients = g.emit(kInternalDomain, "LayerNormalizationGrad", inputs, g.needs(1) ? 2 : 1, attrs);
  if (g.needs(0)) g.setGradient(0, more.valid() ? g.add(gradients[0], more) : gradients[0]);
  if (g.needs(1)) g.setGradient(1, gradients[1]);
  return {};
}

}  // namespace

extern const OpDef kLayerNormalizationOp{
    .name = "LayerNormalization",
    .sinceVersion = 17,
    .doc =
        "y = (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` (-1) on; outputs y, mean, "
        "inv_std.",
    .inputs = {2, 3},
    .outputs = {1, 3},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferLayerNormalizationShape,
    .gradient = layerNormalizationGradient,
    .differentiableInputs = bit(0) | bit(1) | bit(2),
    .differentiableOutputs = bit(0) | bit(1) | bit(2),
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<8>,
};

extern const OpDef kLayerNormalizationGradOp{
    .name = "LayerNormalizationGrad",
    .domain = kInternalDomain,
    .doc = "dy, x, scale, mean, inv_std → dx?, dscale?, dbias? (bias shaped like scale); attribute axis.",
    .inputs = {5, 5},
    .outputs = {1, 3},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = [](ShapeContext& c) { return reduction_rules::inferNormalisationGrad(c, 5, 2); },
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .flops = reduction_rules::flopsPerElement<14, 1>,
};

}  // namespace stepscope::ops
