#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_parts.h"

namespace stepscope::ops {
namespace {

Status inferReduceScatterShape(ShapeContext& c) {
  SS_ASSIGN(const std::int64_t ranks, ranksOf(c));
  for (std::size_t i = 0; c.hasOutput(i); ++i) {
    if (!c.hasInput(i)) return c.error("output " + std::to_string(i) + " has no input; expected one for each");
    c.setOutput(i, c.inputDType(i), partShape(c, i, i, ranks));
  }
  return {};
}

}  // namespace

extern constexpr OpDef kReduceScatterOp{
    .name = "ReduceScatter",
    .domain = kInternalDomain,
    .doc =
        "y_i = part `rank` of the sum over the ranks of x_i, divided by their number with average = 1; added in the order "
        "of the ranks",
    .inputs = {1, kMany},
    .outputs = {1, kMany},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferReduceScatterShape,
    .noGradientReason = kOptimizerStep,
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
};

}  // namespace stepscope::ops
