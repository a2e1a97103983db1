#include <algorithm>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferUnsqueezeShape(ShapeContext& c) {
  std::optional<Shape> shape;
  const auto axes = c.integers(1);
  if (const std::optional<Shape> input = c.inputShape(0); input && axes) {
    SS_ASSIGN(const std::vector<std::size_t> added, uniqueAxes(c, *axes, input->size() + axes->size()));
    shape.emplace();
    std::size_t next = 0;
    for (std::size_t a = 0; a < input->size() + added.size(); ++a)
      shape->push_back(std::find(added.begin(), added.end(), a) != added.end() ? Dim(1) : (*input)[next++]);
  }
  c.setOutput(0, c.inputDType(0), shape);
  forwardContents(c, shape);
  return {};
}

Status unsqueezeGradient(GradientContext& g) {
  g.setGradient(0, g.reshapeLike(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kUnsqueezeOp{
    .name = "Unsqueeze",
    .sinceVersion = 21,
    .doc = "Inserts axes of extent 1 at the listed places of the result.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferUnsqueezeShape,
    .gradient = unsqueezeGradient,
    .differentiableInputs = bit(0),
    .view = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
