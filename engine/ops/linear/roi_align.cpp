#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferRoiAlignShape(ShapeContext& c) {
  for (const std::size_t i : {0, 1, 2}) {
    const std::size_t rank = i == 0 ? 4 : i == 1 ? 2 : 1;
    if (c.rankKnown(i) && c.inputShape(i)->size() != rank)
      return c.error("input " + std::to_string(i) + " of shape " + shapeText(*c.inputShape(i)) + "; expected rank " +
                     std::to_string(rank));
  }
  Shape y = c.freshShape(0, 4);
  if (c.rankKnown(1)) {
    y[0] = (*c.inputShape(1))[0];
    SS_TRY(c.unify((*c.inputShape(1))[1], Dim(4), "coordinates per region"));
    if (c.rankKnown(2)) SS_TRY(c.unify(y[0], (*c.inputShape(2))[0], "regions and batch indices"));
  }
  if (c.rankKnown(0)) y[1] = (*c.inputShape(0))[1];
  y[2] = Dim(c.attrs().integer("output_height", 1));
  y[3] = Dim(c.attrs().integer("output_width", 1));
  if (y[2].value() < 1 || y[3].value() < 1) return c.error("output_height or output_width below 1");
  c.setOutput(0, c.inputDType(0), std::move(y));
  return {};
}

Status roiAlignGradient(GradientContext& g) {
  if (!g.needs(0)) return {};
  if (g.attrs().text("mode", "avg") != "avg") return g.error("mode 'max' has no gradient rule; expected 'avg'");
  g.setGradient(0, g.internal("RoiAlignGrad", {g.dy(0), g.x(1), g.x(2), g.shapeOf(g.x(0))}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kRoiAlignOp{
    .name = "RoiAlign",
    .sinceVersion = 16,
    .doc =
        "Regions of x cut into bins; a bin is the mean (or largest) of values interpolated at points spread over it. rois "
        "are constants.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferRoiAlignShape,
    .gradient = roiAlignGradient,
    .differentiableInputs = bit(0),
};

}  // namespace stepscope::ops
