#include "engine/ops/elementwise/updates.h"

namespace stepscope::ops {
namespace {

// Inputs: parameter, gradient, m, v, lr, step, scale?. Outputs: parameter', m', v', copy? (see updates.h). Output 0 may lie
// over input 0, output 1 over input 2 and output 2 over input 3. The gradient is multiplied by scale first; step counts
// updates from 1.

Status inferAdamUpdateShape(ShapeContext& c) {
  SS_TRY(requireFloat(c, 0));
  SS_TRY(shape_rules::sameAsInput0(c));
  for (std::size_t state = 1; state <= 2; ++state)
    if (c.hasOutput(state)) c.setOutput(state, c.inputDType(state + 1), c.inputShape(0));
  return c.hasOutput(3) ? inferCopy(c, 3, 0) : Status();
}

}  // namespace

extern constexpr OpDef kAdamUpdateOp{
    .name = "AdamUpdate",
    .domain = kInternalDomain,
    .doc = "PyTorch's Adam, or AdamW with attribute decoupled; attributes beta1, beta2, eps, weight_decay",
    .inputs = {6, 7},
    .outputs = {1, 4},
    .category = OpCategory::kOptimizer,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferAdamUpdateShape,
    .noGradientReason = kOptimizerStep,
    .inPlaceInputs = bit(0),
    .recompute = Recompute::kNever,
    .gradients = {.first = 1},
};

}  // namespace stepscope::ops
