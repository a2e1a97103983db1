#include "engine/ops/shape_context.h"

#include <algorithm>

#include "engine/ir/said_by.h"

namespace stepscope {

std::optional<std::vector<std::int64_t>> ShapeContext::integers(std::size_t i) const {
  if (const Tensor* tensor = constant(i)) return intElements(tensor->view());
  if (const auto known = contents(i)) return knownDims(*known);
  return std::nullopt;
}

void ShapeContext::setOutput(std::size_t i, DType dtype, std::optional<Shape> shape) {
  setOutputType(i, {ValueKind::kTensor, dtype, std::move(shape)});
}

Shape ShapeContext::freshShape(std::size_t output, std::size_t rank) {
  Shape shape;
  for (std::size_t axis = 0; axis < rank; ++axis) shape.push_back(freshDim(output, axis));
  return shape;
}

Status ShapeContext::unifyShapes(const Shape& a, const Shape& b, std::string_view what) {
  if (a.size() != b.size())
    return error(std::string(what) + " " + shapeText(a) + " and " + shapeText(b) + " differ in rank");
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!unify(a[i], b[i], what)) return error(std::string(what) + " " + shapeText(a) + " and " + shapeText(b) + " differ");
  return {};
}

Result<Shape> ShapeContext::broadcast(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim x = i < rank - a.size() ? Dim(1) : a[i - (rank - a.size())];
    const Dim y = i < rank - b.size() ? Dim(1) : b[i - (rank - b.size())];
    if (x == y || y == Dim(1))
      result[i] = x;
    else if (x == Dim(1))
      result[i] = y;
    else if (x.known() && y.known())
      return error("shapes " + shapeText(a) + " and " + shapeText(b) + " do not broadcast");
    else
      result[i] = x.known() ? x : y.known() ? y : x;  // a symbol against a number above 1 must be that number or 1
  }
  return result;
}

Result<std::size_t> ShapeContext::axis(std::int64_t axis, const Shape& shape) const {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (const auto normal = normalizeAxis(axis, rank)) return static_cast<std::size_t>(*normal);
  return error("axis " + std::to_string(axis) + " out of range for shape " + shapeText(shape) + "; valid " +
               std::to_string(-rank) + ".." + std::to_string(rank - 1));
}

tl::unexpected<Error> ShapeContext::error(std::string message) const {
  return tl::make_unexpected(saidBy(node(), invalid(std::move(message)).value()));
}

namespace shape_rules {

Status sameAsInput0(ShapeContext& c) {
  c.setOutput(0, c.inputDType(0), c.inputShape(0));
  return {};
}

namespace {
Status broadcastTo(ShapeContext& c, DType dtype) {
  std::optional<Shape> shape = Shape{};
  for (std::size_t i = 0; i < c.inputCount() && shape; ++i) {
    if (!c.rankKnown(i)) {
      shape.reset();
      break;
    }
    SS_ASSIGN(shape, c.broadcast(*shape, *c.inputShape(i)));
  }
  c.setOutput(0, dtype, shape);
  return {};
}
}  // namespace

Status broadcastAll(ShapeContext& c) { return broadcastTo(c, c.inputDType(0)); }
Status broadcastBool(ShapeContext& c) { return broadcastTo(c, DType::kBool); }
Status boolLikeInput0(ShapeContext& c) {
  c.setOutput(0, DType::kBool, c.inputShape(0));
  return {};
}

}  // namespace shape_rules
}  // namespace stepscope
