#include "engine/ops/linear/matmul_rule.h"

#include <algorithm>

#include "kernels/strided_view.h"

namespace stepscope::ops {
namespace {

ValueId product(GradientContext& g, ValueId a, ValueId b, bool transA, bool transB, float alpha) {
  Attributes attrs;
  if (transA) attrs.set("transA", std::int64_t{1});
  if (transB) attrs.set("transB", std::int64_t{1});
  if (alpha != 1.0f) attrs.set("alpha", alpha);
  return g.internal("BatchedMatMul", {a, b}, std::move(attrs));
}

ValueId asMatrix(GradientContext& g, ValueId v, std::size_t rank) {
  return g.op("Flatten", {v}, {{"axis", static_cast<std::int64_t>(rank) - 1}});
}

}  // namespace

Result<Shape> productShape(ShapeContext& c, const Shape& left, const Shape& right) {
  if (left.empty() || right.empty())
    return c.error("matrix product of " + shapeText(left) + " and " + shapeText(right) + "; expected rank 1 or more");
  const Dim inner = right.size() == 1 ? right[0] : right[right.size() - 2];
  SS_TRY(c.unify(left.back(), inner, "inner extents of the matrix product"));
  const Shape leftBatch(left.begin(), left.size() > 2 ? left.end() - 2 : left.begin());
  const Shape rightBatch(right.begin(), right.size() > 2 ? right.end() - 2 : right.begin());
  SS_ASSIGN(Shape y, c.broadcast(leftBatch, rightBatch));
  if (left.size() > 1) y.push_back(left[left.size() - 2]);
  if (right.size() > 1) y.push_back(right.back());
  return y;
}

Result<Shape> permutedShape(ShapeContext& c, const Shape& shape, std::string_view name) {
  const auto perm = c.attrs().integers(name);
  if (perm.empty()) return shape;
  std::vector<std::int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  Shape result;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != shape.size() || sorted[i] != static_cast<std::int64_t>(i))
      return c.error("attribute " + std::string(name) + " is " + dimsText(perm) + "; expected the axes of " +
                     shapeText(shape) + " in some order");
    result.push_back(shape[static_cast<std::size_t>(perm[i])]);
  }
  return result;
}

Result<Shape> seenShape(ShapeContext& c, std::size_t input, std::string_view view, std::string_view perm) {
  const Shape& shape = *c.inputShape(input);
  if (!c.attrs().has(view)) return permutedShape(c, shape, perm);
  const auto dims = knownDims(shape);
  const auto seen = dims ? StridedView::of(*dims, c.attrs(), view) : StridedView::read(c.attrs().integers(view));
  if (!seen) return c.error(seen.error().message);
  return permutedShape(c, shapeOf(seen->dims), perm);
}

Dims seenDims(std::span<const std::int64_t> dims, const Attributes* attrs, std::string_view view) {
  const Dims all(dims.begin(), dims.end());
  if (!attrs || !attrs->has(view)) return all;
  const auto seen = StridedView::of(all, *attrs, view);
  return seen ? seen->dims : all;
}

Status requireOneType(const ShapeContext& c, std::initializer_list<std::size_t> inputs) {
  DType common = DType::kUndefined;
  for (const std::size_t i : inputs) {
    if (i >= c.inputCount() || !c.hasInput(i)) continue;
    const DType dtype = c.inputDType(i);
    if (common == DType::kUndefined) common = dtype;
    if (dtype != DType::kUndefined && dtype != common)
      return c.error("input " + std::to_string(i) + " is " + std::string(dtypeName(dtype)) + "; expected " +
                     std::string(dtypeName(common)) + " as the others");
  }
  return {};
}

Status inferMatMul(ShapeContext& c, std::size_t a, std::size_t b, bool transA, bool transB, DType dtype) {
  if (!c.rankKnown(a) || !c.rankKnown(b)) {
    c.setOutput(0, dtype, std::nullopt);
    return {};
  }
  Shape left = *c.inputShape(a), right = *c.inputShape(b);
  if (transA && left.size() > 1) std::swap(left.back(), left[left.size() - 2]);
  if (transB && right.size() > 1) std::swap(right.back(), right[right.size() - 2]);
  SS_ASSIGN(Shape y, productShape(c, left, right));
  c.setOutput(0, dtype, std::move(y));
  return {};
}

Status matMulGradient(GradientContext& g, bool transA, bool transB, float alpha) {
  SS_ASSIGN(const std::size_t rankA, g.rank(g.x(0)));
  SS_ASSIGN(const std::size_t rankB, g.rank(g.x(1)));
  ValueId a = g.x(0), b = g.x(1), dy = g.dy(0);
  transA = transA && rankA > 1;
  transB = transB && rankB > 1;
  if (rankB == 1) {
    b = g.unsqueeze(b, {1});
    dy = g.unsqueeze(dy, {-1});
  }
  if (rankA == 1) {
    a = g.unsqueeze(a, {0});
    dy = g.unsqueeze(dy, {-2});
  }
  if (g.needs(0)) {
    const ValueId da = transA ? product(g, b, dy, transB, true, alpha) : product(g, dy, b, false, !transB, alpha);
    const ValueId sum = g.reduceTo(da, a);
    g.setGradient(0, rankA == 1 ? g.squeeze(sum, {0}) : sum);
  }
  if (g.needs(1)) {
    if (rankB <= 2 && rankA > 2 && !transA) {
      dy = asMatrix(g, dy, rankA);
      a = asMatrix(g, a, rankA);
    }
    const ValueId db = transB ? product(g, dy, a, true, transA, alpha) : product(g, a, dy, !transA, false, alpha);
    const ValueId sum = g.reduceTo(db, b);
    g.setGradient(1, rankB == 1 ? g.squeeze(sum, {1}) : sum);
  }
  return {};
}

double matMulFlops(const OpShapes& shapes) {
  const Dims a = seenDims(shapes.inputs[0], shapes.attrs, "viewA");
  const auto y = shapes.outputs[0];
  double elements = 1;
  for (const std::int64_t extent : y) elements *= static_cast<double>(extent);
  if (elements == 0) return 0;
  std::size_t inner = a.size() - 1;  // axis of a that is summed over
  if (shapes.attrs) {
    const auto perm = shapes.attrs->integers("permA");
    if (!perm.empty()) inner = static_cast<std::size_t>(perm.back());
    if (shapes.attrs->integer("transA", 0) != 0 && a.size() > 1) inner = a.size() - 2;
  }
  return 2 * elements * static_cast<double>(a[inner]);
}

}  // namespace stepscope::ops
