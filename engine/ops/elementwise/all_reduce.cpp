#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// Any number of tensors of one type, which are sent together. Ranks differ in what they hold, never in shapes.
Status inferShape(ShapeContext& c) {
  for (std::size_t i = 0; c.hasOutput(i); ++i) {
    if (!c.hasInput(i)) return c.error("output " + std::to_string(i) + " has no input; expected one for each");
    c.setOutput(i, c.inputDType(i), c.inputShape(i));
  }
  return {};
}

}  // namespace

extern constexpr OpDef kAllReduceOp{
    .name = "AllReduce",
    .domain = kInternalDomain,
    .doc = "y_i = sum over the ranks of x_i, divided by their number with average = 1; added in the order of the ranks",
    .inputs = {1, kMany},
    .outputs = {1, kMany},
    .category = OpCategory::kOther,
    .precision = Precision::kWide,
    .hostInputs = kNoInputs,
    .inferShape = inferShape,
    .noGradientReason = kOptimizerStep,
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .sideEffect = SideEffect::kCollective,
};

}  // namespace stepscope::ops
