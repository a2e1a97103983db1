#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

// Inputs: R, T, then all parameters, all gradients, all of each state. Outputs: new parameters, then new states.

Status inferPreviewAdagradShape(ShapeContext& c) {
  constexpr std::size_t kKinds = 3;  // per tensor: parameter, gradient and states
  const std::size_t operands = c.inputCount();
  if (operands < 2 || (operands - 2) % kKinds != 0)
    return c.error(std::to_string(operands) + " inputs; 2 + " + std::to_string(kKinds) + " per parameter");
  const std::size_t count = (operands - 2) / kKinds;
  for (std::size_t kind = 0, output = 0; kind < kKinds; ++kind) {
    if (kind == 1) continue;  // gradients have no new value
    for (std::size_t i = 0; i < count; ++i, ++output) {
      const std::size_t input = 2 + kind * count + i;
      SS_TRY(requireFloat(c, input));
      if (c.hasOutput(output)) c.setOutput(output, c.inputDType(input), c.inputShape(input));
    }
  }
  return {};
}

}  // namespace

extern constexpr OpDef kPreviewAdagradOp{
    .name = "Adagrad",
    .domain = "ai.onnx.preview.training",
    .doc = "Adagrad of the ONNX preview domain",
    .inputs = {3, kMany},
    .outputs = {1, kMany},
    .category = OpCategory::kOther,
    .precision = Precision::kF32,
    .hostInputs = kNoInputs,
    .inferShape = inferPreviewAdagradShape,
    .noGradientReason = kOptimizerStep,
    .recompute = Recompute::kNever,
};

}  // namespace stepscope::ops
