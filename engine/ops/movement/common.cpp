#include "engine/ops/movement/common.h"

#include <algorithm>

namespace stepscope::ops {

std::optional<Contents> knownContents(const ShapeContext& c, std::size_t i) {
  if (!c.hasInput(i)) return std::nullopt;
  if (auto known = c.contents(i)) return known;
  const Tensor* tensor = c.constant(i);
  if (tensor == nullptr || tensor->dims().size() > 1 || !(isInteger(tensor->dtype()) || tensor->dtype() == DType::kBool))
    return std::nullopt;
  if (static_cast<std::size_t>(tensor->elements()) > kMaxContents) return std::nullopt;
  Contents contents;
  for (std::int64_t k = 0; k < tensor->elements(); ++k) contents.emplace_back(elementAsInt(tensor->view(), k));
  return contents;
}

void forwardContents(ShapeContext& c, const std::optional<Shape>& shape) {
  if (!shape || shape->size() > 1) return;
  if (auto contents = knownContents(c, 0)) c.setContents(0, std::move(*contents));
}

Status outputShapedByInput(ShapeContext& c, std::size_t i, DType dtype) {
  if (const auto contents = knownContents(c, i)) {
    for (const Dim& dim : *contents)
      if (dim.known() && dim.value() < 0) return c.error("shape " + shapeText(*contents) + " has a negative extent");
    c.setOutput(0, dtype, *contents);
    return {};
  }
  if (const Tensor* tensor = c.constant(i))
    return c.error("shape operand of shape " + dimsText(tensor->dims()) + "; expected a vector");
  std::optional<Shape> shape;
  if (c.rankKnown(i) && c.inputShape(i)->size() == 1 && c.inputShape(i)->front().known()) {
    const std::int64_t rank = c.inputShape(i)->front().value();
    if (rank < 0 || rank > 64) return c.error("shape operand of " + std::to_string(rank) + " elements");
    shape = c.freshShape(0, static_cast<std::size_t>(rank));
  }
  c.setOutput(0, dtype, std::move(shape));
  return {};
}

Status gradientShapedByInput1(ShapeContext& c) { return outputShapedByInput(c, 1, c.inputDType(0)); }
Status gradientShapedByInput2(ShapeContext& c) { return outputShapedByInput(c, 2, c.inputDType(0)); }

Result<std::vector<std::size_t>> uniqueAxes(const ShapeContext& c, const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<std::size_t> result;
  for (const std::int64_t axis : axes) {
    const auto normal = normalizeAxis(axis, static_cast<std::int64_t>(rank));
    if (!normal)
      return c.error("axis " + std::to_string(axis) + " out of range for rank " + std::to_string(rank) + "; valid " +
                     std::to_string(-static_cast<std::int64_t>(rank)) + ".." +
                     std::to_string(static_cast<std::int64_t>(rank) - 1));
    if (std::find(result.begin(), result.end(), static_cast<std::size_t>(*normal)) != result.end())
      return c.error("axis " + std::to_string(axis) + " is listed twice");
    result.push_back(static_cast<std::size_t>(*normal));
  }
  return result;
}

Status sameType(const ShapeContext& c, std::size_t a, std::size_t b) {
  const DType x = c.inputDType(a), y = c.inputDType(b);
  if (x == y || x == DType::kUndefined || y == DType::kUndefined) return {};
  return c.error("inputs " + std::to_string(a) + " and " + std::to_string(b) + " are " + std::string(dtypeName(x)) +
                 " and " + std::string(dtypeName(y)) + "; expected one type");
}

Status indexType(const ShapeContext& c, std::size_t i) {
  const DType dtype = c.inputDType(i);
  if (dtype == DType::kUndefined || dtype == DType::kI32 || dtype == DType::kI64) return {};
  return c.error("indices of type " + std::string(dtypeName(dtype)) + "; expected int32 or int64");
}

Result<std::size_t> pick(const ShapeContext& c, std::int64_t index, std::size_t position, std::size_t extent) {
  const auto size = static_cast<std::int64_t>(extent);
  if (const auto normal = normalizeAxis(index, size)) return static_cast<std::size_t>(*normal);
  return c.error("index " + std::to_string(index) + " at position " + std::to_string(position) + " out of range; valid " +
                 (size == 0 ? "none, the axis is empty" : std::to_string(-size) + ".." + std::to_string(size - 1)));
}

Status pickContents(ShapeContext& c, const Contents& contents, std::span<const std::int64_t> indices) {
  Contents picked;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    SS_ASSIGN(const std::size_t at, pick(c, indices[k], k, contents.size()));
    picked.push_back(contents[at]);
  }
  c.setContents(0, std::move(picked));
  return {};
}

namespace {

// y = x with updates written, the last writer of a place wins: the place's own number is scattered the same way, and who
// finds it there again has won.
Status writeGradient(GradientContext& g, const ScatterOps& ops) {
  if (g.needs(0)) g.setGradient(0, ops.scatter(g.dy(0), g.zerosLike(g.x(2)), "none"));
  if (!g.needs(2)) return {};
  const ValueId count = g.op("Size", {g.x(2)});
  const ValueId numbers = g.op("Range", {g.intScalar(0), count, g.intScalar(1)});
  const ValueId own = g.reshapeLike(numbers, g.x(2));
  const ValueId nobody = g.op("Expand", {g.intScalar(-1), g.shapeOf(g.x(0))});
  const ValueId won = g.op("Equal", {ops.gather(ops.scatter(nobody, own, "none")), own});
  g.setGradient(2, g.where(won, ops.gather(g.dy(0)), g.scalar(0, g.x(2))));
  return {};
}

// y = x * product of the updates of the place. Zeros among the updates are counted, so that nothing is divided by them.
Status productGradient(GradientContext& g, const ScatterOps& ops) {
  const ValueId x = g.x(0), u = g.x(2);
  const ValueId one = g.scalar(1, x), zero = g.scalar(0, x);
  if (g.needs(0)) g.setGradient(0, g.mul(g.dy(0), ops.scatter(g.op("Expand", {one, g.shapeOf(x)}), u, "mul")));
  if (!g.needs(2)) return {};
  const ValueId isZero = g.op("Equal", {u, zero});
  const ValueId nonZero = g.where(isZero, one, u);
  const ValueId zeroCount = g.castLike(isZero, x);
  const ValueId otherZeros = g.sub(ops.gather(ops.scatter(g.zerosLike(x), zeroCount, "add")), zeroCount);
  const ValueId others = g.div(ops.gather(ops.scatter(x, nonZero, "mul")), nonZero);
  const ValueId factor = g.where(g.op("Equal", {otherZeros, zero}), others, zero);
  g.setGradient(2, g.mul(ops.gather(g.dy(0)), factor));
  return {};
}

// y = max (min) of x and the updates of the place; ties share evenly.
Status extremumGradient(GradientContext& g, const ScatterOps& ops) {
  const ValueId x = g.x(0), u = g.x(2), zero = g.scalar(0, x);
  const ValueId keeps = g.op("Equal", {x, g.y(0)});
  const ValueId sets = g.op("Equal", {u, ops.gather(g.y(0))});
  const ValueId winners = ops.scatter(g.castLike(keeps, x), g.castLike(sets, x), "add");
  const ValueId share = g.div(g.dy(0), winners);
  if (g.needs(0)) g.setGradient(0, g.where(keeps, share, zero));
  if (g.needs(2)) g.setGradient(2, g.where(sets, ops.gather(share), zero));
  return {};
}

}  // namespace

Status scatterGradient(GradientContext& g, const ScatterOps& ops) {
  const std::string reduction = g.attrs().text("reduction", "none");
  if (reduction == "none") return writeGradient(g, ops);
  if (reduction == "mul") return productGradient(g, ops);
  if (reduction == "max" || reduction == "min") return extremumGradient(g, ops);
  if (reduction != "add") return g.error("reduction '" + reduction + "'; expected none, add, mul, min or max");
  if (g.needs(0)) g.setGradient(0, g.dy(0));
  if (g.needs(2)) g.setGradient(2, ops.gather(g.dy(0)));
  return {};
}

}  // namespace stepscope::ops
