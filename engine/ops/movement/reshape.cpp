#include <algorithm>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

// Solves the -1: factors that input and target share by spelling are cancelled first, so that sums divide too.
Result<Dim> inferredExtent(ShapeContext& c, Shape from, const Shape& target, std::size_t unknown) {
  Dim rest(1);
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (i == unknown) continue;
    const auto same = std::find(from.begin(), from.end(), target[i]);
    if (same != from.end() && !(target[i] == Dim(0)))
      from.erase(same);
    else
      rest = rest * target[i];
  }
  const Dim total = productOf(from, 0, from.size());
  if (rest == Dim(0)) return c.error("cannot infer -1 in shape " + shapeText(target) + " beside an extent of 0");
  if (const auto exact = Dim::divideExactly(total, rest)) return *exact;
  if (total.known() && rest.known())
    return c.error("input of shape " + shapeText(*c.inputShape(0)) + " does not divide into shape " + shapeText(target));
  return Dim::floorDiv(total, rest);
}

Status inferReshapeShape(ShapeContext& c) {
  const auto wished = knownContents(c, 1);
  if (!wished) return outputShapedByInput(c, 1, c.inputDType(0));
  const bool zeroIsZero = c.attrs().integer("allowzero", 0) != 0;
  const std::optional<Shape> input = c.inputShape(0);
  Shape target = *wished;
  std::optional<std::size_t> unknown;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (!target[i].known()) continue;
    if (target[i].value() == -1) {
      if (unknown) return c.error("shape " + shapeText(*wished) + " has more than one -1");
      unknown = i;
    } else if (target[i].value() < 0) {
      return c.error("shape " + shapeText(*wished) + " has a negative extent; valid are numbers from 0 and one -1");
    } else if (target[i].value() == 0 && !zeroIsZero) {
      if (input && i >= input->size())
        return c.error("extent 0 at position " + std::to_string(i) + " copies an axis that shape " + shapeText(*input) +
                       " lacks");
      target[i] = input ? (*input)[i] : c.freshDim(0, i);
    }
  }
  if (unknown) {
    if (input) {
      SS_ASSIGN(target[*unknown], inferredExtent(c, *input, target, *unknown));
    } else {
      target[*unknown] = c.freshDim(0, *unknown);
    }
  } else if (input) {
    const Dim from = productOf(*input, 0, input->size()), to = productOf(target, 0, target.size());
    if (from.known() && to.known() && !(from == to))
      return c.error("input of shape " + shapeText(*input) + " does not fill shape " + shapeText(target));
  }
  c.setOutput(0, c.inputDType(0), target);
  forwardContents(c, target);
  return {};
}

Status reshapeGradient(GradientContext& g) {
  g.setGradient(0, g.reshapeLike(g.dy(0), g.x(0)));
  return {};
}

}  // namespace

constexpr OpDef kReshapeOp{
    .name = "Reshape",
    .sinceVersion = 21,
    .doc = "The same elements with other extents; 0 copies an extent of the input (unless allowzero), one -1 is inferred.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferReshapeShape,
    .gradient = reshapeGradient,
    .differentiableInputs = bit(0),
    .view = true,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
