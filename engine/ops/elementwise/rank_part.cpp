#include "engine/ops/elementwise/common.h"
#include "engine/ops/elementwise/rank_parts.h"

namespace stepscope::ops {
namespace {

Status inferRankPartShape(ShapeContext& c) {
  SS_ASSIGN(const std::int64_t ranks, ranksOf(c));
  c.setOutput(0, c.inputDType(0), partShape(c, 0, 0, ranks));
  return {};
}

}  // namespace

extern constexpr OpDef kRankPartOp{
    .name = "RankPart",
    .domain = kInternalDomain,
    .doc = "y = part `rank` of the elements of x where `ranks` share them out; zeros behind its end",
    .inputs = {1, 1},
    .outputs = {1, 1},
    .category = OpCategory::kOther,
    .precision = Precision::kFollows,
    .hostInputs = kNoInputs,
    .inferShape = inferRankPartShape,
    .noGradientReason = kOptimizerStep,
    .traffic = {.picked = bit(0), .moves = true},
};

}  // namespace stepscope::ops
