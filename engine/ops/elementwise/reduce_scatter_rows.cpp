#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_messages.h"

namespace stepscope::ops {
namespace {

Status inferScatteredRowsShape(ShapeContext& c) {
  if (c.inputDType(0) == DType::kBool) return c.error("bool; expected numbers, which can be added");
  SS_TRY(movedLikeInput0(c));
  if (!c.rankKnown(0)) return {};
  Shape shape = *c.inputShape(0);
  if (shape.empty()) return c.error("a scalar; expected a first axis, of which each rank gets its part");
  const std::int64_t ranks = c.attrs().integer("ranks", 0);
  const auto part = ranks > 0 ? Dim::divideExactly(shape[0], Dim(ranks)) : std::nullopt;
  shape[0] = part ? *part : c.freshDim(0, 0);  // numbers that do not divide are named once the batch is there
  c.setOutput(0, c.inputDType(0), shape);
  return {};
}

// A row of x of every rank reaches the loss through the rank that has its sum.
Status reduceScatterRowsGradient(GradientContext& g) {
  g.setGradient(0, g.internal("AllGatherRows", {g.dy(0)}, g.attrs()));
  return {};
}

}  // namespace

extern constexpr OpDef kReduceScatterRowsOp{
    .name = "ReduceScatterRows",
    .domain = kInternalDomain,
    .doc = "y = this rank's part, along the first axis, of the sum over the ranks of x, added in their order",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferScatteredRowsShape,
    .gradient = reduceScatterRowsGradient,
    .differentiableInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
};

}  // namespace stepscope::ops
