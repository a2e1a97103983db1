#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_messages.h"

namespace stepscope::ops {
namespace {

Status inferSendShape(ShapeContext& c) {
  SS_TRY(messageEnds(c));
  return movedLikeInput0(c);
}

// The way back is that of Recv, which knows both ends.
Status sendGradient(GradientContext& g) {
  g.setGradient(0, g.dy(0));
  return {};
}

}  // namespace

extern constexpr OpDef kSendOp{
    .name = "Send",
    .domain = kInternalDomain,
    .doc = "y = x, the same memory: the message that Recv of the same `from`, `to` and `tag` moves",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferSendShape,
    .gradient = sendGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .view = true,
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
