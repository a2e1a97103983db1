#include <array>

#include "kernels/cpu/channels/channels.h"

namespace stepscope::cpu {

Status takesChannels(const KernelSpec& spec, std::initializer_list<std::size_t> fullInputs,
                     std::initializer_list<std::size_t> fullOutputs, std::initializer_list<std::size_t> vectors) {
  const auto refuse = [&](std::string_view what) {
    return unsupported(spec.op + ": " + std::string(what) + "; falls back to the reference kernel");
  };
  for (const auto* operands : {&spec.inputs, &spec.outputs})
    for (const OperandSpec& operand : *operands)
      if (operand.present() && operand.dtype != DType::kF32) return refuse("not float32");
  if (!spec.inputPresent(0) || spec.inputs[0].dims.empty() || elementCount(spec.inputs[0].dims) == 0)
    return refuse("no elements");
  const OperandSpec& x = spec.inputs[0];
  const auto like = [&](const OperandSpec& operand) { return operand.dims == x.dims && operand.layout == x.layout; };
  for (const std::size_t i : fullInputs)
    if (spec.inputPresent(i) && !like(spec.inputs[i])) return refuse("operands that differ in extents or layout");
  for (const std::size_t i : fullOutputs)
    if (spec.outputPresent(i) && !like(spec.outputs[i])) return refuse("operands that differ in extents or layout");
  const std::int64_t channels = x.dims.size() > 1 ? x.dims[1] : 1;
  for (const std::size_t i : vectors)
    if (!spec.inputPresent(i) || elementCount(spec.inputs[i].dims) != channels)
      return refuse("a vector that does not have one element per channel");
  return {};
}

std::span<const KernelEntry> channelKernels() {
  static constexpr std::array kKernels{
      KernelEntry{"", "BatchNormalization", makeBatchNorm, true},
      KernelEntry{"stepscope", "BatchNormalizationGrad", makeBatchNormGrad, true},
      KernelEntry{"stepscope", "FusedBatchNormalization", makeBatchNorm, true},
      KernelEntry{"stepscope", "FusedBatchNormalizationGrad", makeBatchNormGrad, true},
      KernelEntry{"stepscope", "ReluGrad", makeReluGrad, true},
      KernelEntry{"stepscope", "Reorder", makeReorder, true},
  };
  return kKernels;
}

}  // namespace stepscope::cpu
