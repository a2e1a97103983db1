#include <cstdlib>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferPadShape(ShapeContext& c) {
  SS_TRY(sameType(c, 0, 2));
  const std::optional<Shape> data = c.inputShape(0);
  const auto pads = knownContents(c, 1);
  const auto listed = c.hasInput(3) ? c.integers(3) : std::nullopt;
  if (!data || !pads || (c.hasInput(3) && !listed)) {
    std::optional<Shape> shape;
    if (data) shape = c.freshShape(0, data->size());
    c.setOutput(0, c.inputDType(0), shape);
    return {};
  }
  std::vector<std::size_t> axes;
  if (listed) {
    SS_ASSIGN(axes, uniqueAxes(c, *listed, data->size()));
  } else {
    for (std::size_t a = 0; a < data->size(); ++a) axes.push_back(a);
  }
  if (pads->size() != 2 * axes.size())
    return c.error(std::to_string(pads->size()) + " pads; expected two for each of " + std::to_string(axes.size()) +
                   " axes");
  Shape shape = *data;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Dim &begin = (*pads)[i], &end = (*pads)[axes.size() + i];
    for (const Dim* pad : {&begin, &end})
      if (pad->known() && std::abs(pad->value()) > std::int64_t{1} << 40)
        return c.error("pad " + pad->text() + " is out of reason");
    Dim& extent = shape[axes[i]];
    extent = extent + begin + end;
    if (extent.known() && extent.value() < 0)
      return c.error("pads leave extent " + extent.text() + " on axis " + std::to_string(axes[i]));
  }
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

Status padGradient(GradientContext& g) {
  const std::string mode = g.attrs().text("mode", "constant");
  const ValueId axes = g.node().input(3);
  if (mode != "constant") {
    if (g.needs(0)) g.setGradient(0, g.internal("PadGrad", {g.dy(0), g.shapeOf(g.x(0)), g.x(1), axes}, {{"mode", mode}}));
    return {};
  }
  const Tensor* pads = g.constant(g.x(1));
  ValueId crop;
  if (pads != nullptr) {
    std::vector<std::int64_t> numbers = intElements(pads->view());
    for (std::int64_t& pad : numbers) pad = -pad;
    crop = g.ints(numbers);
  } else {
    crop = g.neg(g.x(1));
  }
  const ValueId dx = g.op("Pad", {g.dy(0), crop, ValueId{}, axes}, {{"mode", mode}});
  if (g.needs(0)) g.setGradient(0, dx);
  if (g.needs(2)) {  // every element of y that is not one of x is the constant
    const ValueId ones = g.op("Expand", {g.scalar(1, g.dy(0)), g.shapeOf(g.x(0))});
    const ValueId inside = g.op("Pad", {ones, g.x(1), ValueId{}, axes}, {{"mode", mode}});
    const ValueId zero = g.scalar(0, g.dy(0));
    const ValueId outside = g.where(g.op("Equal", {inside, zero}), g.dy(0), zero);
    g.setGradient(2, g.reshapeLike(g.op("ReduceSum", {outside}, {{"keepdims", std::int64_t{0}}}), g.x(2)));
  }
  return {};
}

}  // namespace

constexpr OpDef kPadOp{
    .name = "Pad",
    .sinceVersion = 21,
    .doc =
        "x with elements added (negative: removed) before and after each axis: a constant, or x reflected, its edge, x "
        "wrapped.",
    .inputs = {2, 4},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = bit(1) | bit(3),
    .inferShape = inferPadShape,
    .gradient = padGradient,
    .differentiableInputs = bit(0) | bit(2),
    .traffic = {.moves = true},
};

constexpr OpDef kPadGradOp{
    .name = "PadGrad",
    .domain = kInternalDomain,
    .doc = "dx of Pad: every element of dy added where its value came from; inputs dy, shape of x, pads, axes?.",
    .inputs = {3, 4},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kWide,
    .hostInputs = bit(1) | bit(2) | bit(3),
    .inferShape = gradientShapedByInput1,
    .noGradientReason = "second derivatives are not built",
    .differentiableInputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
