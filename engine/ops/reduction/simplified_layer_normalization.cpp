#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferSimplifiedLayerNormalizationShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  SS_TRY(reduction_rules::expectFloat(c, 1, "scale"));
  c.setOutput(0, c.inputDType(1), c.inputShape(0));
  std::optional<Shape> statistics;
  if (c.rankKnown(0)) {
    const Shape x = *c.inputShape(0);
    SS_ASSIGN(const std::size_t axis, c.axis(c.attrs().integer("axis", -1), x));
    SS_TRY(reduction_rules::expectNormalised(c, 1, x, axis, "scale"));
    statistics = x;
    for (std::size_t i = axis; i < x.size(); ++i) (*statistics)[i] = 1;
  }
  if (c.hasOutput(1)) c.setOutput(1, reduction_rules::statisticsType(c), statistics);
  return {};
}

Status simplifiedLayerNormalizationGradient(GradientContext& g) {
  const ValueId inverse = g.ensureOutput(1);
  reduction_rules::normalisationGradient(g, "SimplifiedLayerNormalizationGrad", {g.dy(0), g.x(0), g.x(1), inverse},
                                         {{"axis", g.attrs().integer("axis", -1)}},
                                         reduction_rules::statisticsGradient(g, {}, inverse, {}, g.dy(1)));
  return {};
}

constexpr OpDef rms(std::string_view domain, std::string_view name, int since = 1) {
  return {
      .name = name,
      .domain = domain,
      .sinceVersion = since,
      .doc = "y = x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` (-1) on; outputs y, inv_std.",
      .inputs = {2, 2},
      .outputs = {1, 2},
      .category = OpCategory::kNormalization,
      .precision = Precision::kF32,
      .hostInputs = kNoInputs,
      .inferShape = inferSimplifiedLayerNormalizationShape,
      .gradient = simplifiedLayerNormalizationGradient,
      .differentiableInputs = bit(0) | bit(1),
      .differentiableOutputs = bit(0) | bit(1),
      .inPlaceInputs = bit(0),
      .flops = reduction_rules::flopsPerElement<5>,
  };
}

}  // namespace

// ONNX Runtime's exporters write SimplifiedLayerNormalization in the default domain.
extern const OpDef kRmsNormalizationOp = rms("", "RMSNormalization", kInternalOpset);  // ONNX: 23
extern const OpDef kSimplifiedLayerNormalizationOp = rms("", "SimplifiedLayerNormalization");
extern const OpDef kMsSimplifiedLayerNormalizationOp = rms("com.microsoft", "SimplifiedLayerNormalization");

extern const OpDef kSimplifiedLayerNormalizationGradOp{
    .name = "SimplifiedLayerNormalizationGrad",
    .domain = kInternalDomain,
    .doc = "dy, x, scale, inv_std → dx?, dscale?; attribute axis.",
    .inputs = {4, 4},
    .outputs = {1, 2},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = [](ShapeContext& c) { return reduction_rules::inferNormalisationGrad(c, 4, 2); },
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .inPlaceInputs = bit(0) | bit(1),
    .flops = reduction_rules::flopsPerElement<10, 1>,
};

}  // namespace stepscope::ops
