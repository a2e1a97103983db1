#include "engine/ops/elementwise/common.h"

namespace stepscope::ops {
namespace {

constexpr std::string_view kPreviewDomain = "ai.onnx.preview.training";

// Inputs: R, T, then all parameters, all gradients, all of each state. Outputs: new parameters, then new states.
// kKinds: what there is of each parameter: itself, its gradient and its states.
template <std::size_t kKinds>
Status inferPreviewShape(ShapeContext& c) {
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

template <std::size_t kKinds>
constexpr OpDef previewOp(std::string_view name, std::string_view doc) {
  return {
      .name = name,
      .domain = kPreviewDomain,
      .doc = doc,
      .inputs = {3, kMany},
      .outputs = {1, kMany},
      .category = OpCategory::kOther,
      .precision = Precision::kF32,
      .hostInputs = kNoInputs,
      .inferShape = inferPreviewShape<kKinds>,
      .noGradientReason = kOptimizerStep,
      .recompute = Recompute::kNever,
  };
}

}  // namespace

extern constexpr OpDef kPreviewAdagradOp = previewOp<3>("Adagrad", "Adagrad of the ONNX preview domain");
extern constexpr OpDef kPreviewAdamOp = previewOp<4>("Adam", "Adam of the ONNX preview domain");
extern constexpr OpDef kPreviewMomentumOp = previewOp<3>("Momentum", "SGD with momentum of the ONNX preview domain");

}  // namespace stepscope::ops
