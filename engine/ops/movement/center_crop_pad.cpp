#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferCenterCropPadShape(ShapeContext& c) {
  const std::optional<Shape> x = c.inputShape(0);
  if (!x) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  std::vector<std::int64_t> listed = c.attrs().integers("axes");
  if (!c.attrs().has("axes"))
    for (std::size_t a = 0; a < x->size(); ++a) listed.push_back(static_cast<std::int64_t>(a));
  SS_ASSIGN(const std::vector<std::size_t> axes, uniqueAxes(c, listed, x->size()));
  const auto wished = knownContents(c, 1);
  if (wished && wished->size() != axes.size())
    return c.error(std::to_string(wished->size()) + " extents for " + std::to_string(axes.size()) + " axes");
  Shape shape = *x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (wished && (*wished)[i].known() && (*wished)[i].value() < 0)
      return c.error("extent " + (*wished)[i].text() + " is negative");
    shape[axes[i]] = wished ? (*wished)[i] : c.freshDim(0, axes[i]);
  }
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

// What was cropped gets zeros, what was padded is cropped: the same op back to the shape of x.
Status centerCropPadGradient(GradientContext& g) {
  ValueId extents = g.shapeOf(g.x(0));
  if (g.attrs().has("axes")) extents = g.op("Gather", {extents, g.ints(g.attrs().integers("axes"))});
  g.setGradient(0, g.op("CenterCropPad", {g.dy(0), extents}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kCenterCropPadOp{
    .name = "CenterCropPad",
    .sinceVersion = 18,
    .doc = "x cropped or zero-padded on both sides to the given extents; an odd element goes to the end.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = bit(1),
    .inferShape = inferCenterCropPadShape,
    .gradient = centerCropPadGradient,
    .differentiableInputs = bit(0),
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
