#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_messages.h"

namespace stepscope::ops {
namespace {

Status inferReducedShape(ShapeContext& c) {
  SS_TRY(checkRoot(c));
  if (c.inputDType(0) == DType::kBool) return c.error("bool; expected numbers, which can be added");
  return movedLikeInput0(c);
}

// x of every rank reaches the loss through what the root has.
Status reduceGradient(GradientContext& g) {
  g.setGradient(0, g.internal("Broadcast", {g.dy(0)}, {{"root", g.attrs().integer("root", 0)}}));
  return {};
}

}  // namespace

extern constexpr OpDef kReduceOp{
    .name = "Reduce",
    .domain = kInternalDomain,
    .doc = "y = sum over the ranks of x, added in their order, on rank `root`; zeros on the others",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferReducedShape,
    .gradient = reduceGradient,
    .differentiableInputs = bit(0),
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
};

}  // namespace stepscope::ops
