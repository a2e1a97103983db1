#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferCholeskyShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 1));
  SS_TRY(reduction_rules::expectFloat(c, 0, "a"));
  const std::optional<Shape> a = c.inputShape(0);
  if (a) {
    if (a->size() < 2) return c.error("a has shape " + shapeText(*a) + "; expected square matrices [..., M, M]");
    SS_TRY(c.unify((*a)[a->size() - 2], a->back(), "the two extents of a square matrix"));
  }
  c.setOutput(0, c.inputDType(0), a);
  return {};
}

ValueId lower(GradientContext& g, ValueId v, std::int64_t diagonal) {
  return g.op("Trilu", {v, g.intScalar(diagonal)}, {{"upper", std::int64_t{0}}});
}

// da = ½ L⁻ᵀ (P + Pᵀ) L⁻¹ with P the lower triangle of Lᵀ dL, its diagonal halved: Murray, arXiv:1602.07527, eq. 10. The
// product is symmetric, so the second solve may take it transposed.
Status choleskyGradient(GradientContext& g) {
  const Attributes transposed{{"transpose", std::int64_t{1}}};
  SS_ASSIGN(const std::size_t rank, g.rank(g.y(0)));
  std::vector<std::int64_t> perm(rank);
  for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
  std::swap(perm[rank - 1], perm[rank - 2]);
  const ValueId m = g.internal("BatchedMatMul", {g.y(0), g.dy(0)}, {{"transA", std::int64_t{1}}});
  const ValueId both = g.add(lower(g, m, 0), g.transpose(lower(g, m, -1), perm));
  const ValueId left = g.internal("TriangularSolve", {g.y(0), both}, transposed);
  const ValueId all = g.internal("TriangularSolve", {g.y(0), g.transpose(left, perm)}, transposed);
  g.setGradient(0, g.mul(all, 0.5));
  return {};
}

// 1/3 M^3 per matrix.
double flopsOfCholesky(const OpShapes& shapes) {
  const auto a = shapes.inputs[0];
  return a.empty() ? 0 : reduction_rules::flopsPerElement<1>(shapes) * static_cast<double>(a.back()) / 3;
}

}  // namespace

extern const OpDef kCholeskyOp{
    .name = "Cholesky",
    .domain = kInternalDomain,
    .doc = "L of L Lᵀ = (a + aᵀ) / 2, lower triangular, of each positive definite [M, M] matrix of a.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferCholeskyShape,
    .gradient = choleskyGradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kCostly,
    .flops = flopsOfCholesky,
};

}  // namespace stepscope::ops
