#include <algorithm>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferSqueezeShape(ShapeContext& c) {
  std::optional<Shape> shape;
  if (const std::optional<Shape> input = c.inputShape(0)) {
    if (c.hasInput(1)) {
      if (const auto axes = c.integers(1)) {
        SS_ASSIGN(const std::vector<std::size_t> drop, uniqueAxes(c, *axes, input->size()));
        shape.emplace();
        for (std::size_t a = 0; a < input->size(); ++a) {
          if (std::find(drop.begin(), drop.end(), a) == drop.end()) {
            shape->push_back((*input)[a]);
          } else if (!c.unify((*input)[a], Dim(1), "squeezed extent and 1")) {
            return c.error("axis " + std::to_string(a) + " of shape " + shapeText(*input) + " is not 1");
          }
        }
      }
    } else if (knownDims(*input)) {
      shape.emplace();
      for (const Dim& dim : *input)
        if (!(dim == Dim(1))) shape->push_back(dim);
    }
  }
  c.setOutput(0, c.inputDType(0), shape);
  forwardContents(c, shape);
  return {};
}

Status squeezeGradient(GradientContext& g) {
  g.setGradient(0, g.reshapeLike(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kSqueezeOp{
    .name = "Squeeze",
    .sinceVersion = 21,
    .doc = "Drops axes of extent 1: those listed, or all.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferSqueezeShape,
    .gradient = squeezeGradient,
    .differentiableInputs = bit(0),
    .view = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
