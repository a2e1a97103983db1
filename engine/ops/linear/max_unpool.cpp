#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferMaxUnpoolShape(ShapeContext& c) {
  SS_TRY(requireRank(c, 0, 3));
  if (!c.rankKnown(0)) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const Shape input = *c.inputShape(0);
  if (c.rankKnown(1)) SS_TRY(c.unifyShapes(input, *c.inputShape(1), "shapes of the values and their indices"));
  if (c.hasInput(2)) {
    if (const auto contents = c.contents(2)) {
      if (contents->size() != input.size())
        return c.error("output_shape has " + std::to_string(contents->size()) + " values; expected " +
                       std::to_string(input.size()));
      c.setOutput(0, c.inputDType(0), Shape(contents->begin(), contents->end()));
      return {};
    }
    return inferFromShapeInput(c, 2, input.size());
  }
  const auto window = parseWindow(c.attrs(), input.size() - 2);
  if (!window) return c.error(window.error().message);
  Shape y{input[0], input[1]};
  for (std::size_t i = 0; i + 2 < input.size(); ++i) {
    const WindowAxis& a = window->axes[i];
    y.push_back((input[i + 2] - Dim(1)) * Dim(a.stride) + Dim(a.kernel - a.padBegin - a.padEnd));
  }
  c.setOutput(0, c.inputDType(0), std::move(y));
  return {};
}

Status maxUnpoolGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.internal("MaxUnpoolGrad", {g.dy(0), g.x(1)}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kMaxUnpoolOp{
    .name = "MaxUnpool",
    .sinceVersion = 11,
    .doc =
        "y = x at the places that the indices name in the shape the window implies, 0 elsewhere; output_shape adds zeros at "
        "the end.",
    .inputs = {2, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(2),
    .inferShape = inferMaxUnpoolShape,
    .gradient = maxUnpoolGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
