#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_messages.h"

namespace stepscope::ops {
namespace {

Status inferBroadcastedShape(ShapeContext& c) {
  SS_TRY(checkRoot(c));
  return movedLikeInput0(c);
}

// x of the root reaches the loss of every rank; x of the others none.
Status broadcastGradient(GradientContext& g) {
  g.setGradient(0, g.internal("Reduce", {g.dy(0)}, {{"root", g.attrs().integer("root", 0)}}));
  return {};
}

}  // namespace

extern constexpr OpDef kBroadcastOp{
    .name = "Broadcast",
    .domain = kInternalDomain,
    .doc = "y = x of rank `root`, on every rank",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferBroadcastedShape,
    .gradient = broadcastGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
