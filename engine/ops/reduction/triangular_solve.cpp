#include "engine/ops/reduction/rules.h"

namespace stepscope::ops {
namespace {

Status inferTriangularSolveShape(ShapeContext& c) {
  SS_TRY(reduction_rules::expectOperands(c, 2));
  SS_TRY(reduction_rules::expectFloat(c, 0, "a"));
  SS_TRY(reduction_rules::expectSameDType(c, 0, 1));
  if (!c.rankKnown(0) || !c.rankKnown(1)) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const Shape a = *c.inputShape(0), b = *c.inputShape(1);
  if (a.size() < 2 || b.size() < 2)
    return c.error("a " + shapeText(a) + " and b " + shapeText(b) + "; expected matrices [..., M, M] and [..., M, K]");
  SS_TRY(c.unify(a[a.size() - 2], a.back(), "the two extents of a"));
  SS_TRY(c.unify(a.back(), b[b.size() - 2], "columns of a and rows of b"));
  SS_ASSIGN(Shape x, c.broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2)));
  x.insert(x.end(), b.end() - 2, b.end());
  c.setOutput(0, c.inputDType(0), std::move(x));
  return {};
}

// op(a) x = b: db solves the transposed system for dx, and da is what of -db xᵀ (transposed: -x dbᵀ) lies in the triangle.
Status triangularSolveGradient(GradientContext& g) {
  const bool transpose = g.attrs().integer("transpose", 0) != 0, upper = g.attrs().integer("upper", 0) != 0;
  Attributes attrs = g.attrs();
  attrs.set("transpose", std::int64_t{transpose ? 0 : 1});
  const ValueId db = g.internal("TriangularSolve", {g.x(0), g.dy(0)}, attrs);
  if (g.needs(1)) g.setGradient(1, g.reduceTo(db, g.x(1)));
  if (!g.needs(0)) return {};
  const std::vector<ValueId> factors = transpose ? std::vector{g.y(0), db} : std::vector{db, g.y(0)};
  const ValueId whole = g.internal("BatchedMatMul", factors, {{"transB", std::int64_t{1}}, {"alpha", -1.0F}});
  const std::int64_t inside = g.attrs().integer("unit_diagonal", 0) != 0 ? (upper ? 1 : -1) : 0;
  const ValueId triangle = g.op("Trilu", {whole, g.intScalar(inside)}, {{"upper", std::int64_t{upper ? 1 : 0}}});
  g.setGradient(0, g.reduceTo(triangle, g.x(0)));
  return {};
}

// M^2 per column.
double flopsOfTriangularSolve(const OpShapes& shapes) {
  const auto b = shapes.inputs[1];
  return b.size() < 2 ? 0 : reduction_rules::flopsPerElement<1, 1>(shapes) * static_cast<double>(b[b.size() - 2]);
}

}  // namespace

extern const OpDef kTriangularSolveOp{
    .name = "TriangularSolve",
    .domain = kInternalDomain,
    .doc = "a [..., M, M], b [..., M, K] → x with op(tri(a)) x = b; attributes upper, unit_diagonal, transpose.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferTriangularSolveShape,
    .gradient = triangularSolveGradient,
    .differentiableInputs = bit(0) | bit(1),
    .recompute = Recompute::kCostly,
    .flops = flopsOfTriangularSolve,
};

}  // namespace stepscope::ops
