#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferFlattenShape(ShapeContext& c) {
  std::optional<Shape> shape;
  if (const auto& input = c.inputShape(0)) {
    const auto rank = static_cast<std::int64_t>(input->size());
    const std::int64_t axis = c.attrs().integer("axis", 1), split = axis < 0 ? axis + rank : axis;
    if (split < 0 || split > rank)
      return c.error("axis " + std::to_string(axis) + " out of range for shape " + shapeText(*input) + "; valid " +
                     std::to_string(-rank) + ".." + std::to_string(rank));
    const auto s = static_cast<std::size_t>(split);
    shape = Shape{productOf(*input, 0, s), productOf(*input, s, input->size())};
  } else {
    shape = c.freshShape(0, 2);
  }
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

Status flattenGradient(GradientContext& g) {
  g.setGradient(0, g.reshapeLike(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kFlattenOp{
    .name = "Flatten",
    .sinceVersion = 21,
    .doc = "The same elements as a matrix: axes before `axis` by axes from `axis` on.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferFlattenShape,
    .gradient = flattenGradient,
    .differentiableInputs = bit(0),
    .view = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
