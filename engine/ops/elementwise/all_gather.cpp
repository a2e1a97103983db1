#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_parts.h"

namespace stepscope::ops {
namespace {

// Tensors whose extents the results have, then a part of each. A parameter stands there as it was, so that the plan lets the
// parts that come be written over it.
Status inferAllGatherShape(ShapeContext& c) {
  SS_ASSIGN(const std::int64_t ranks, ranksOf(c));
  const std::size_t count = c.inputCount() / 2;
  if (c.inputCount() != 2 * count || c.outputCount() > count)
    return c.error(std::to_string(c.inputCount()) + " inputs and " + std::to_string(c.outputCount()) +
                   " outputs; expected a tensor, its part and a result of each");
  for (std::size_t i = 0; i < count; ++i) {
    const auto part = partShape(c, i, i, ranks);
    if (part && c.rankKnown(count + i)) SS_TRY(c.unifyShapes(*part, *c.inputShape(count + i), "part and its extents"));
    if (c.hasOutput(i)) c.setOutput(i, c.inputDType(count + i), c.inputShape(i));
  }
  return {};
}

}  // namespace

extern constexpr OpDef kAllGatherOp{
    .name = "AllGather",
    .domain = kInternalDomain,
    .doc = "y_i has the extents of x_i and the parts of all ranks, of which this one has p_i; inputs x_0, x_1 … p_0, p_1 …",
    .inputs = {2, kMany},
    .outputs = {1, kMany},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferAllGatherShape,
    .noGradientReason = kOptimizerStep,
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
    .traffic = {.moves = true},
};

}  // namespace stepscope::ops
