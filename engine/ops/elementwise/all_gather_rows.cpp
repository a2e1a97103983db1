#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_messages.h"

namespace stepscope::ops {
namespace {

Status inferGatheredRowsShape(ShapeContext& c) {
  SS_TRY(movedLikeInput0(c));
  if (!c.rankKnown(0)) return {};
  Shape shape = *c.inputShape(0);
  if (shape.empty()) return c.error("a scalar; expected a first axis, of which each rank has its part");
  const std::int64_t ranks = c.attrs().integer("ranks", 0);
  shape[0] = ranks > 0 ? shape[0] * Dim(ranks) : c.freshDim(0, 0);
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

// x of a rank reaches the loss of every rank.
Status allGatherRowsGradient(GradientContext& g) {
  g.setGradient(0, g.internal("ReduceScatterRows", {g.dy(0)}, g.attrs()));
  return {};
}

}  // namespace

extern constexpr OpDef kAllGatherRowsOp{
    .name = "AllGatherRows",
    .domain = kInternalDomain,
    .doc = "y = x of all ranks, one behind the other along the first axis, on every rank",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferGatheredRowsShape,
    .gradient = allGatherRowsGradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
