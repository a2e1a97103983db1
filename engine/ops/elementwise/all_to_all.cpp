#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_messages.h"

namespace stepscope::ops {
namespace {

Status inferAllToAllShape(ShapeContext& c) {
  if (c.rankKnown(0) && c.inputShape(0)->empty())
    return c.error("a scalar; expected an axis that the ranks share out between them");
  return movedLikeInput0(c);
}

// What went from rank r to rank s comes back from s to r.
Status allToAllGradient(GradientContext& g) {
  g.setGradient(0, g.internal("AllToAll", {g.dy(0)}));
  return {};
}

}  // namespace

extern constexpr OpDef kAllToAllOp{
    .name = "AllToAll",
    .domain = kInternalDomain,
    .doc = "the first axis has as many parts as there are ranks: part r of y is this rank's part of x of rank r",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferAllToAllShape,
    .gradient = allToAllGradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
