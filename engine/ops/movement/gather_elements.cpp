#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferGatherElementsShape(ShapeContext& c) {
  SS_TRY(indexType(c, 1));
  if (const std::optional<Shape> data = c.inputShape(0)) {
    SS_TRY(c.axis(c.attrs().integer("axis", 0), *data));
    if (c.rankKnown(1) && c.inputShape(1)->size() != data->size())
      return c.error("data " + shapeText(*data) + " and indices " + shapeText(*c.inputShape(1)) + " differ in rank");
  }
  c.setOutput(0, c.inputDType(0), c.inputShape(1));
  return {};
}

Status gatherElementsGradient(GradientContext& g) {
  g.setGradient(
      0, g.internal("GatherElementsGrad", {g.dy(0), g.x(1), g.shapeOf(g.x(0))}, {{"axis", g.attrs().integer("axis", 0)}}));
  return {};
}

}  // namespace

constexpr OpDef kGatherElementsOp{
    .name = "GatherElements",
    .sinceVersion = 13,
    .doc = "y[i] = x[i, with indices[i] on `axis`]; negative indices count from the end.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGatherElementsShape,
    .gradient = gatherElementsGradient,
    .differentiableInputs = bit(0),
    .traffic = {.picked = bit(0), .moves = true},
};

constexpr OpDef kGatherElementsGradOp{
    .name = "GatherElementsGrad",
    .domain = kInternalDomain,
    .doc = "dx of GatherElements: dy added at indices along `axis`, duplicates in order; inputs dy, indices, shape of x.",
    .inputs = {3, 3},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kWide,
    .hostInputs = bit(2),
    .inferShape = gradientShapedByInput2,
    .noGradientReason = "second derivatives are not built",
    .differentiableInputs = kAllInputs,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
