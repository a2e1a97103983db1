#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

std::vector<std::int64_t> axesOf(const Attributes& attrs) { return attrs.integers("axes", {0, 2, 3}); }

Status inferMeanVarianceNormalizationShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 1));
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  if (c.rankKnown(0))
    for (const std::int64_t axis : axesOf(c.attrs())) SS_TRY(c.axis(axis, *c.inputShape(0)));
  return shape_rules::sameAsInput0(c);
}

// z = x - mean, s = sqrt(mean(z^2)), y = z / d with d = s + 1e-9:
// d z = dy / d - z * mean(dy * z) / (d^2 * s), d x = d z - mean(d z).
Status meanVarianceNormalizationGradient(GradientContext& g) {
  const ValueId axes = g.ints(axesOf(g.attrs()));
  const auto mean = [&](ValueId v) { return g.op("ReduceMean", {v, axes}, {{"keepdims", std::int64_t{1}}}); };
  const ValueId z = g.sub(g.x(0), mean(g.x(0)));
  const ValueId s = g.op("Sqrt", {mean(g.mul(z, z))});
  const ValueId d = g.add(s, 1e-9);
  // A constant line has z = 0, which must not meet 1 / 0.
  const ValueId safe = g.where(g.op("Equal", {s, g.scalar(0, s)}), g.scalar(1, s), s);
  const ValueId slope = g.div(g.div(mean(g.mul(g.dy(0), z)), g.mul(d, d)), safe);
  const ValueId dz = g.sub(g.div(g.dy(0), d), g.mul(z, slope));
  g.setGradient(0, g.sub(dz, mean(dz)));
  return {};
}

}  // namespace

extern const OpDef kMeanVarianceNormalizationOp{
    .name = "MeanVarianceNormalization",
    .sinceVersion = 13,
    .doc = "y = (x - mean) / (deviation + 1e-9) over `axes` (0, 2, 3).",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferMeanVarianceNormalizationShape,
    .gradient = meanVarianceNormalizationGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<6>,
};

}  // namespace stepscope::ops
