#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferInverseShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectFloat(c, 0, "x"));
  const std::optional<Shape> x = c.inputShape(0);
  if (x) {
    if (x->size() < 2) return c.error("x has shape " + shapeText(*x) + "; expected square matrices [..., M, M]");
    SS_TRY(c.unify((*x)[x->size() - 2], x->back(), "the two extents of a square matrix"));
  }
  c.setOutput(0, c.inputDType(0), x);
  return {};
}

// dx = -yᵀ · dy · yᵀ
Status inverseGradient(GradientContext& g) {
  const ValueId left = g.internal("BatchedMatMul", {g.y(0), g.dy(0)}, {{"transA", std::int64_t{1}}, {"alpha", -1.0f}});
  g.setGradient(0, g.internal("BatchedMatMul", {left, g.y(0)}, {{"transB", std::int64_t{1}}}));
  return {};
}

// 2 M^3 per matrix.
double flopsOfInverse(const OpShapes& shapes) {
  const auto x = shapes.inputs[0];
  return x.empty() ? 0 : reduction_rules::flopsPerElement<2>(shapes) * static_cast<double>(x.back());
}

}  // namespace

extern const OpDef kInverseOp{
    .name = "Inverse",
    .domain = "com.microsoft",
    .doc = "y = inverse of each [M, M] matrix of x; that of a singular one is NaN.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferInverseShape,
    .gradient = inverseGradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kCostly,
    .flops = flopsOfInverse,
};

}  // namespace stepscope::ops
