#include "engine/ops/elementwise/updates.h"

namespace stepscope::ops {
namespace {

// Inputs: parameter, gradient, momentum?, lr, scale?, step?. Outputs: parameter', momentum', copy? (see
// updates.h). Output 0 may lie over input 0,
// and output 1 over input 2. The gradient is multiplied by scale first; step counts updates from 1, and at 1 dampening does
// not apply.

Status inferSgdUpdateShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  SS_TRY(shape_rules::sameAsInput0(c));
  if (c.hasOutput(1)) c.setOutput(1, c.hasInput(2) ? c.inputDType(2) : c.inputDType(0), c.inputShape(0));
  return c.hasOutput(2) ? inferCopy(c, 2, 0) : Status();
}

}  // namespace

extern constexpr OpDef kSgdUpdateOp{
    .name = "SgdUpdate",
    .domain = kInternalDomain,
    .doc = "PyTorch's SGD; attributes momentum, dampening, nesterov, weight_decay",
    .inputs = {4, 6},
    .outputs = {1, 3},
    .absentInputs = bit(2),
    .category = OpCategory::kOptimizer,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferSgdUpdateShape,
    .noGradientReason = kOptimizerStep,
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .gradients = {.first = 1},
};

}  // namespace stepscope::ops
