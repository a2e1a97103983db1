#include <algorithm>

#include "engine/ops/movement/common.h"

namespace stepscope::ops {
namespace {

Status inferGatherNdShape(ShapeContext& c) {
  SS_TRY(indexType(c, 1));
  const std::optional<Shape> data = c.inputShape(0), indices = c.inputShape(1);
  std::optional<Shape> shape;
  const std::int64_t batchDims = c.attrs().integer("batch_dims", 0);
  if (data && indices) {
    const auto rank = static_cast<std::int64_t>(data->size()), indexRank = static_cast<std::int64_t>(indices->size());
    if (batchDims < 0 || batchDims >= std::min(rank, indexRank))
      return c.error("batch_dims " + std::to_string(batchDims) + " does not fit data " + shapeText(*data) + " and indices " +
                     shapeText(*indices));
    for (std::int64_t a = 0; a < batchDims; ++a)
      SS_TRY(c.unify((*data)[static_cast<std::size_t>(a)], (*indices)[static_cast<std::size_t>(a)],
                     "batch extents of data and indices"));
    if (const auto tuple = indices->back().asKnown()) {
      if (*tuple < 1 || *tuple > rank - batchDims)
        return c.error("tuples of " + std::to_string(*tuple) + " indices; valid 1.." + std::to_string(rank - batchDims));
      shape = Shape(indices->begin(), indices->end() - 1);
      shape->insert(shape->end(), data->begin() + batchDims + *tuple, data->end());
    }
  }
  c.setOutput(0, c.inputDType(0), shape);
  if (!shape || shape->size() > 1 || data->size() != 1) return {};
  const auto contents = knownContents(c, 0);
  const auto numbers = c.integers(1);
  if (!contents || !numbers || numbers->size() > kMaxContents) return {};
  return pickContents(c, *contents, *numbers);
}

Status gatherNdGradient(GradientContext& g) {
  g.setGradient(0, g.internal("GatherNDGrad", {g.dy(0), g.x(1), g.shapeOf(g.x(0))},
                              {{"batch_dims", g.attrs().integer("batch_dims", 0)}}));
  return {};
}

}  // namespace

constexpr OpDef kGatherNDOp{
    .name = "GatherND",
    .sinceVersion = 13,
    .doc = "Runs of x at the index tuples of the last axis of indices, within each of the leading batch_dims axes.",
    .inputs = {2, 2},
    .outputs = {1, 1},
    .category = OpCategory::kMovement,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGatherNdShape,
    .gradient = gatherNdGradient,
    .differentiableInputs = bit(0),
    .traffic = {.picked = bit(0), .moves = true},
};

constexpr OpDef kGatherNDGradOp{
    .name = "GatherNDGrad",
    .domain = kInternalDomain,
    .doc = "dx of GatherND: runs of dy added at the index tuples, duplicates in order; inputs dy, indices, shape of x.",
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
