#include "engine/ops/linear/conv_rule.h"
#include "engine/ops/linear/ops.h"

namespace stepscope::ops {
namespace {

Status inferGridSampleShape(ShapeContext& c) {
  SS_TRY(requireRank(c, 0, 3));
  SS_TRY(requireRank(c, 1, 3));
  if (!c.rankKnown(0) && !c.rankKnown(1)) {
    c.setOutput(0, c.inputDType(0), std::nullopt);
    return {};
  }
  const std::size_t rank = c.rankKnown(0) ? c.inputShape(0)->size() : c.inputShape(1)->size();
  const Shape x = c.rankKnown(0) ? *c.inputShape(0) : c.freshShape(0, rank),
              grid = c.rankKnown(1) ? *c.inputShape(1) : c.freshShape(0, rank);
  if (x.size() != grid.size())
    return c.error("x of shape " + shapeText(x) + " and grid of shape " + shapeText(grid) + "; expected the same rank");
  SS_TRY(c.unify(grid.back(), Dim(static_cast<std::int64_t>(rank) - 2), "coordinates per point and axes to sample"));
  SS_TRY(c.unify(x[0], grid[0], "batches of x and grid"));
  Shape y{x[0], x[1]};
  for (std::size_t i = 1; i + 1 < rank; ++i) y.push_back(grid[i]);
  c.setOutput(0, c.inputDType(0), std::move(y));
  return {};
}

Status gridSampleGradient(GradientContext& g) {
  if (g.needs(0)) g.setGradient(0, g.internal("GridSampleInputGrad", {g.dy(0), g.x(1), g.shapeOf(g.x(0))}, g.attrs()));
  if (g.needs(1)) g.setGradient(1, g.internal("GridSampleGridGrad", {g.dy(0), g.x(0), g.x(1)}, g.attrs()));
  return {};
}

}  // namespace

constexpr OpDef kGridSampleOp{
    .name = "GridSample",
    .sinceVersion = 20,
    .doc =
        "y[n, c, o] = x[n, c] at the position grid[n, o], coordinates -1..1, the last axis first: linear, nearest or cubic.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGridSampleShape,
    .gradient = gridSampleGradient,
    .differentiableInputs = bit(0) | bit(1),
};

}  // namespace stepscope::ops
