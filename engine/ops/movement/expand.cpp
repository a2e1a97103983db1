#include <algorithm>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferExpandShape(ShapeContext& c) {
  const auto wished = knownContents(c, 1);
  const std::optional<Shape> input = c.inputShape(0);
  if (!wished || !input) {
    if (!wished && c.rankKnown(1) && input && c.inputShape(1)->size() == 1 && c.inputShape(1)->front().known()) {
      const std::int64_t length = c.inputShape(1)->front().value();
      if (length < 0 || length > 64) return c.error("shape operand of " + std::to_string(length) + " elements");
      c.setOutput(0, c.inputDType(0), c.freshShape(0, std::max(static_cast<std::size_t>(length), input->size())));
    } else {
      c.setOutput(0, c.inputDType(0), std::nullopt);
    }
    return {};
  }
  for (const Dim& dim : *wished)
    if (dim.known() && dim.value() < 0) return c.error("shape " + shapeText(*wished) + " has a negative extent");
  SS_ASSIGN(const Shape shape, c.broadcast(*input, *wished));
  c.setOutput(0, c.inputDType(0), shape);
  if (shape.size() > 1) return {};
  const auto contents = knownContents(c, 0);
  if (!contents) return {};
  if (contents->size() == 1 && !shape.empty()) {
    if (shape[0].known() && shape[0].value() <= static_cast<std::int64_t>(kMaxContents))
      c.setContents(0, Contents(static_cast<std::size_t>(shape[0].value()), contents->front()));
  } else {
    c.setContents(0, *contents);
  }
  return {};
}

Status expandGradient(GradientContext& g) {
  g.setGradient(0, g.reduceTo(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kExpandOp{
    .name = "Expand",
    .sinceVersion = 13,
    .doc = "The input broadcast with the given shape (both ways: extents 1 of the shape keep the input's).",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferExpandShape,
    .gradient = expandGradient,
    .differentiableInputs = bit(0),
    .layout = {.outputs = bit(0), .channels = ChannelRule::kFromVector},
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
