// Fast kernels that know channels, in f32 and where said in bfloat16: normalisation over batch and space, in plain and in
// nChw16c layout, and what changes the layout. Contracts are those of the reference twins.
#pragma once

#include <initializer_list>

#include "kernels/kernel.h"

namespace stepscope::cpu {

Result<std::unique_ptr<Kernel>> makeBatchNorm(const KernelSpec& spec);  // BatchNormalization, FusedBatchNormalization
Result<std::unique_ptr<Kernel>> makeBatchNormGrad(
    const KernelSpec& spec);  // BatchNormalizationGrad, FusedBatchNormalizationGrad
// The same for bfloat16 operands in kChannelsLast that the two have checked.
std::unique_ptr<Kernel> makeBatchNormLast(const KernelSpec& spec);
std::unique_ptr<Kernel> makeBatchNormLastGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeReluGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeReorder(const KernelSpec& spec);

// Error kUnsupported unless all operands are f32 (with `bfloat16`: or the full ones are all bfloat16), the `full` inputs and
// outputs that are there have the extents and the layout of input 0, the `vectors` inputs have one element per channel, and
// there are elements.
Status takesChannels(const KernelSpec& spec, std::initializer_list<std::size_t> fullInputs,
                     std::initializer_list<std::size_t> fullOutputs, std::initializer_list<std::size_t> vectors,
                     bool bfloat16 = false);

// The kernels of this folder.
std::span<const KernelEntry> channelKernels();

}  // namespace stepscope::cpu
