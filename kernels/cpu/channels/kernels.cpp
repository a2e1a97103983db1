#include <algorithm>
#include <array>

#include "kernels/cpu/channels/channels.h"

namespace stepscope::cpu {

Status takesChannels(const KernelSpec& spec, std::initializer_list<std::size_t> fullInputs,
                     std::initializer_list<std::size_t> fullOutputs, std::initializer_list<std::size_t> vectors,
                     bool bfloat16) {
  const auto refuse = [&](std::string_view what) {
    return unsupported(spec.op + ": " + std::string(what) + "; falls back to the reference kernel");
  };
  const bool low = bfloat16 && spec.inputPresent(0) && spec.inputs[0].dtype == DType::kBF16;
  const auto typed = [&](const std::vector<OperandSpec>& operands, std::initializer_list<std::size_t> full) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].present() &&
          operands[i].dtype != (low && std::find(full.begin(), full.end(), i) != full.end() ? DType::kBF16 : DType::kF32))
        return false;
    return true;
  };
  if (!typed(spec.inputs, fullInputs) || !typed(spec.outputs, fullOutputs)) return refuse("not float32");
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
      KernelEntry{.domain = "", .op = "BatchNormalization", .make = makeBatchNorm, .layouts = true, .channelsLast = true},
      KernelEntry{.domain = "stepscope",
                  .op = "BatchNormalizationGrad",
                  .make = makeBatchNormGrad,
                  .layouts = true,
                  .channelsLast = true},
      KernelEntry{.domain = "stepscope",
                  .op = "FusedBatchNormalization",
                  .make = makeBatchNorm,
                  .layouts = true,
                  .channelsLast = true},
      KernelEntry{.domain = "stepscope",
                  .op = "FusedBatchNormalizationGrad",
                  .make = makeBatchNormGrad,
                  .layouts = true,
                  .channelsLast = true},
      KernelEntry{"stepscope", "ReluGrad", makeReluGrad, true},
      KernelEntry{.domain = "stepscope", .op = "Reorder", .make = makeReorder, .layouts = true, .channelsLast = true},
  };
  return kKernels;
}

}  // namespace stepscope::cpu
