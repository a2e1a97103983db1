#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferOneHotShape(ShapeContext& c) {
  std::optional<Shape> shape = c.inputShape(0);
  if (shape) {
    const auto rank = static_cast<std::int64_t>(shape->size());
    const std::int64_t wish = c.attrs().integer("axis", -1);
    const auto axis = normalizeAxis(wish, rank + 1);
    if (!axis)
      return c.error("axis " + std::to_string(wish) + " out of range for indices of shape " + shapeText(*shape) +
                     "; valid " + std::to_string(-rank - 1) + ".." + std::to_string(rank));
    Dim depth = c.freshDim(0, static_cast<std::size_t>(*axis));
    if (const auto known = knownContents(c, 1); known && known->size() == 1) {
      depth = known->front();
    } else if (const Tensor* number = c.constant(1);
               number != nullptr && number->elements() == 1 && isFloating(number->dtype())) {
      const double value = elementAsDouble(number->view(), 0);
      if (!(value >= 0 && value < 1e15)) return c.error("depth " + std::to_string(value) + "; expected a number from 0");
      depth = Dim(static_cast<std::int64_t>(value));
    }
    if (depth.known() && depth.value() < 0) return c.error("depth " + depth.text() + "; expected a number from 0");
    shape->insert(shape->begin() + *axis, depth);
  }
  c.setOutput(0, c.inputDType(2), shape);
  return {};
}

// dvalues = [sum of dy off the hot places, sum of dy on them].
Status oneHotGradient(GradientContext& g) {
  const ValueId pair = g.op("Concat", {g.unsqueeze(g.scalar(0, g.x(2)), {0}), g.unsqueeze(g.scalar(1, g.x(2)), {0})},
                            {{"axis", std::int64_t{0}}});
  const ValueId numbers = g.op("OneHot", {g.x(0), g.x(1), pair}, {{"axis", g.attrs().integer("axis", -1)}});
  const ValueId zero = g.scalar(0, numbers), cold = g.op("Equal", {numbers, zero});
  const Attributes scalar{{"keepdims", std::int64_t{0}}};
  const ValueId on = g.op("ReduceSum", {g.where(cold, zero, g.dy(0))}, scalar);
  const ValueId off = g.op("ReduceSum", {g.where(cold, g.dy(0), zero)}, scalar);
  g.setGradient(2, g.op("Concat", {g.unsqueeze(off, {0}), g.unsqueeze(on, {0})}, {{"axis", std::int64_t{0}}}));
  return {};
}

}  // namespace

constexpr OpDef kOneHotOp{
    .name = "OneHot",
    .sinceVersion = 11,
    .doc =
        "values[1] where the position on `axis` equals the index, values[0] elsewhere; indices outside -depth..depth-1 "
        "match nothing.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferOneHotShape,
    .gradient = oneHotGradient,
    .differentiableInputs = bit(2),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
