#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status expectSquare(ShapeContext& c, std::size_t input) {
  SS_TRY(reduction_rules::expectFloat(c, input, "x"));
  if (!c.rankKnown(input)) return {};
  const Shape x = *c.inputShape(input);
  if (x.size() < 2) return c.error("x has shape " + shapeText(x) + "; expected square matrices [..., M, M]");
  return c.unify(x[x.size() - 2], x[x.size() - 1], "the two extents of a square matrix");
}

Status inferDetShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 1));
  SS_TRY(expectSquare(c, 0));
  std::optional<Shape> y = c.inputShape(0);
  if (y) y->resize(y->size() - 2);
  c.setOutput(0, c.inputDType(0), y);
  return {};
}

Status detGradient(GradientContext& g) {
  g.setGradient(0, g.internal("DetGrad", {g.dy(0), g.x(0)}));
  return {};
}

Status inferDetGrad(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(expectSquare(c, 1));
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  c.setOutput(0, c.inputDType(1), c.inputShape(1));
  return {};
}

// 2/3 M^3 per matrix.
double flopsOfDet(const OpShapes& shapes) {
  const auto x = shapes.inputs[0];
  return x.empty() ? 0 : reduction_rules::flopsPerElement<1>(shapes) * static_cast<double>(x.back()) * 2 / 3;
}

}  // namespace

extern const OpDef kDetOp{
    .name = "Det",
    .sinceVersion = 11,
    .doc = "y = determinant of each [M, M] matrix of x.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferDetShape,
    .gradient = detGradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kCostly,
    .flops = flopsOfDet,
};

extern const OpDef kDetGradOp{
    .name = "DetGrad",
    .domain = kInternalDomain,
    .doc = "dy, x → dx = dy * cofactors of x, also for singular matrices.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferDetGrad,
    .noGradientReason = "gradient op",
    .differentiableInputs = kAllInputs,
    .recompute = Recompute::kCostly,
};

}  // namespace stepscope::ops
