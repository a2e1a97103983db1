#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferTriluShape(ShapeContext& c) {
  const std::optional<Shape> shape = c.inputShape(0);
  if (shape && shape->size() < 2) return c.error("shape " + shapeText(*shape) + "; expected at least two axes");
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

Status triluGradient(GradientContext& g) {
  std::vector<ValueId> inputs{g.dy(0)};
  if (g.node().input(1)) inputs.push_back(g.x(1));
  g.setGradient(0, g.op("Trilu", inputs, {{"upper", g.attrs().integer("upper", 1)}}));
  return {};
}

}  // namespace

constexpr OpDef kTriluOp{
    .name = "Trilu",
    .sinceVersion = 14,
    .doc = "The upper (or lower) triangle of each matrix, from diagonal k on; zeros elsewhere.",
    .inputs = {1, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferTriluShape,
    .gradient = triluGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
