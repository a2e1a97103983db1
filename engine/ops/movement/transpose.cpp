#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferTransposeShape(ShapeContext& c) {
  const std::optional<Shape> input = c.inputShape(0);
  std::optional<Shape> shape;
  if (input) {
    std::vector<std::int64_t> perm = c.attrs().integers("perm");
    if (!c.attrs().has("perm"))
      for (std::size_t a = input->size(); a-- > 0;) perm.push_back(static_cast<std::int64_t>(a));
    if (perm.size() != input->size())
      return c.error("perm of " + std::to_string(perm.size()) + " axes for shape " + shapeText(*input));
    std::vector<bool> seen(perm.size(), false);
    shape.emplace();
    for (const std::int64_t axis : perm) {
      if (axis < 0 || axis >= static_cast<std::int64_t>(perm.size()) || seen[static_cast<std::size_t>(axis)])
        return c.error("perm is not a permutation of the axes of shape " + shapeText(*input));
      seen[static_cast<std::size_t>(axis)] = true;
      shape->push_back((*input)[static_cast<std::size_t>(axis)]);
    }
  }
  c.setOutput(0, c.inputDType(0), shape);
  forwardContents(c, shape);
  return {};
}

Status transposeGradient(GradientContext& g) {
  const std::vector<std::int64_t> perm = g.attrs().integers("perm");
  if (!g.attrs().has("perm")) {
    g.setGradient(0, g.op("Transpose", {g.dy(0)}));
    return {};
  }
  std::vector<std::int64_t> inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  g.setGradient(0, g.transpose(g.dy(0), inverse));
  return {};
}

}  // namespace

constexpr OpDef kTransposeOp{
    .name = "Transpose",
    .sinceVersion = 21,
    .doc = "Axis i of the result is axis perm[i] of the input; without perm the axes are reversed.",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferTransposeShape,
    .gradient = transposeGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
