#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferLpNormalizationShape(ShapeContext& c) {
  const std::int64_t p = c.attrs().integer("p", 2);
  if (p != 1 && p != 2) return c.error("p " + std::to_string(p) + "; expected 1 or 2");
  return reduction_rules::inferAlongAxis(c);
}

// d x = (dy - d norm * sum(dy * y)) / norm with d norm = y for p = 2, sign(x) for p = 1; zero where the norm is.
Status lpNormalizationGradient(GradientContext& g) {
  const std::int64_t axis = g.attrs().integer("axis", -1), p = g.attrs().integer("p", 2);
  const Attributes keep{{"keepdims", std::int64_t{1}}};
  const ValueId axes = g.ints({axis});
  const ValueId norm = g.op(p == 2 ? "ReduceL2" : "ReduceL1", {g.x(0), axes}, keep);
  const ValueId isZero = g.op("Equal", {norm, g.scalar(0, norm)});
  const ValueId factor = g.where(isZero, g.scalar(0, norm), g.op("Reciprocal", {g.where(isZero, g.scalar(1, norm), norm)}));
  const ValueId dot = g.op("ReduceSum", {g.mul(g.dy(0), g.y(0)), axes}, keep);
  const ValueId slope = p == 2 ? g.y(0) : g.op("Sign", {g.x(0)});
  g.setGradient(0, g.mul(g.sub(g.dy(0), g.mul(slope, dot)), factor));
  return {};
}

}  // namespace

extern const OpDef kLpNormalizationOp{
    .name = "LpNormalization",
    .doc = "y = x / norm(x) along `axis` (-1), p = 1 or 2; zero where the norm is zero.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kNormalization,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferLpNormalizationShape,
    .gradient = lpNormalizationGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .flops = reduction_rules::flopsPerElement<3>,
};

}  // namespace stepscope::ops
