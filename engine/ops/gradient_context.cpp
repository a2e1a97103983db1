#include "engine/ops/gradient_context.h"

namespace stepscope {

Result<std::size_t> GradientContext::rank(ValueId v) const {
  if (!typeOf(v).shape) return error("gradient needs the rank of a value whose rank is unknown");
  return typeOf(v).shape->size();
}

tl::unexpected<Error> GradientContext::error(std::string message) const {
  return unsupported(node().label() + ": " + std::move(message));
}

ValueId GradientContext::op(std::string_view name, std::vector<ValueId> inputs, Attributes attrs) {
  return emit("", name, std::move(inputs), 1, std::move(attrs)).front();
}

ValueId GradientContext::internal(std::string_view name, std::vector<ValueId> inputs, Attributes attrs) {
  return emit("stepscope", name, std::move(inputs), 1, std::move(attrs)).front();
}

ValueId GradientContext::scalar(double value, ValueId like) { return constantTensor(Tensor::scalar(dtype(like), value)); }
ValueId GradientContext::ints(std::vector<std::int64_t> values) { return constantTensor(Tensor::ints(values)); }
ValueId GradientContext::intScalar(std::int64_t value) {
  return constantTensor(Tensor::of<std::int64_t>({}, std::span<const std::int64_t>(&value, 1)));
}

ValueId GradientContext::shapeOf(ValueId v) {
  if (shape(v))
    if (const auto known = knownDims(*shape(v))) return ints(*known);
  return op("Shape", {v});
}

ValueId GradientContext::dimOf(ValueId v, std::int64_t axis) {
  if (shape(v)) {
    const Dim& dim =
        (*shape(v))[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape(v)->size()) : axis)];
    if (dim.known()) return ints({dim.value()});
  }
  return op("Shape", {v}, {{"start", axis}, {"end", axis == -1 ? std::int64_t{INT64_MAX} : axis + 1}});
}

ValueId GradientContext::castLike(ValueId v, ValueId like) {
  if (dtype(v) == dtype(like)) return v;
  return op("Cast", {v}, {{"to", static_cast<std::int64_t>(dtype(like))}});
}

ValueId GradientContext::zerosLike(ValueId v) { return op("Expand", {scalar(0, v), shapeOf(v)}); }

namespace {
bool sameKnownShape(const std::optional<Shape>& a, const std::optional<Shape>& b) { return a && b && *a == *b; }
}  // namespace

ValueId GradientContext::reshapeLike(ValueId v, ValueId like) {
  if (sameKnownShape(shape(v), shape(like))) return v;
  return op("Reshape", {v, shapeOf(like)}, {{"allowzero", std::int64_t{1}}});
}

ValueId GradientContext::expandTo(ValueId v, ValueId like) {
  if (sameKnownShape(shape(v), shape(like))) return v;
  return op("Expand", {v, shapeOf(like)});
}

ValueId GradientContext::transpose(ValueId v, std::vector<std::int64_t> perm) {
  return op("Transpose", {v}, {{"perm", std::move(perm)}});
}

ValueId GradientContext::unsqueeze(ValueId v, std::vector<std::int64_t> axes) {
  return axes.empty() ? v : op("Unsqueeze", {v, ints(std::move(axes))});
}

ValueId GradientContext::squeeze(ValueId v, std::vector<std::int64_t> axes) {
  return axes.empty() ? v : op("Squeeze", {v, ints(std::move(axes))});
}

ValueId GradientContext::reduceSum(ValueId v, std::vector<std::int64_t> axes, bool keepdims) {
  if (axes.empty()) return v;
  return op("ReduceSum", {v, ints(std::move(axes))}, {{"keepdims", std::int64_t{keepdims}}});
}

ValueId GradientContext::reduceTo(ValueId v, ValueId like) {
  if (sameKnownShape(shape(v), shape(like))) return v;
  return internal("ReduceToShape", {v, shapeOf(like)});
}

}  // namespace stepscope
