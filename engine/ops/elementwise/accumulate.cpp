#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// Inputs: sum, gradient, first (bool scalar). Outputs: sum', square_sum? (a scalar: what clipping needs of sum', without a
// pass of its own; float32 at least, as that of SquareSum). Output 0 may lie over input 0, which is not read in the first
// micro step of a round: nobody has to clear it.

Status inferAccumulateShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  SS_TRY(shape_rules::sameAsInput0(c));
  if (c.hasOutput(1)) c.setOutput(1, sumType(c.inputDType(0)), Shape{});
  return {};
}

}  // namespace

extern constexpr OpDef kAccumulateOp{
    .name = "Accumulate",
    .domain = kInternalDomain,
    .doc = "sum' = first ? gradient : sum + gradient; square_sum = sum of sum'^2 over all elements, accumulated in double",
    .inputs = {3, 3},
    .outputs = {1, 2},
    .category = OpCategory::kElementwise,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferAccumulateShape,
    .noGradientReason = kOptimizerStep,
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .gradients = {.first = 1},
};

}  // namespace stepscope::ops
