#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferTileShape(ShapeContext& c) {
  const std::optional<Shape> input = c.inputShape(0);
  if (!input) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const auto repeats = knownContents(c, 1);
  if (!repeats) {
    c.setOutput(0, c.inputDType(0), c.freshShape(0, input->size()));
    return {};
  }
  if (repeats->size() != input->size())
    return c.error(std::to_string(repeats->size()) + " repeats; expected one for each axis of shape " + shapeText(*input));
  Shape shape;
  for (std::size_t a = 0; a < input->size(); ++a) {
    if ((*repeats)[a].known() && (*repeats)[a].value() < 0)
      return c.error("repeats " + shapeText(*repeats) + " has a negative number");
    shape.push_back((*input)[a] * (*repeats)[a]);
  }
  c.setOutput(0, c.inputDType(0), shape);
  const auto contents = shape.size() <= 1 ? knownContents(c, 0) : std::nullopt;
  if (!contents) return {};
  Contents tiled = shape.empty() ? *contents : Contents{};
  if (!shape.empty()) {
    if (!shape[0].known() || shape[0].value() > static_cast<std::int64_t>(kMaxContents)) return {};
    while (!contents->empty() && tiled.size() < static_cast<std::size_t>(shape[0].value()))
      tiled.insert(tiled.end(), contents->begin(), contents->end());
  }
  c.setContents(0, std::move(tiled));
  return {};
}

Status tileGradient(GradientContext& g) {
  g.setGradient(0, g.internal("TileGrad", {g.dy(0), g.shapeOf(g.x(0))}));
  return {};
}

}  // namespace

constexpr OpDef kTileOp{
    .name = "Tile",
    .sinceVersion = 13,
    .doc = "The input repeated along each axis.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferTileShape,
    .gradient = tileGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

constexpr OpDef kTileGradOp{
    .name = "TileGrad",
    .domain = kInternalDomain,
    .doc = "dx of Tile: the sum of dy over the copies; inputs dy, shape of x.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kWide,
    .hostInputs = bit(1),
    .inferShape = gradientShapedByInput1,
    .noGradientReason = "second derivatives are not built",
    .differentiableInputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
