// The kernels of this folder, one list per file; kernels.cpp joins them.
#pragma once

#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

std::span<const KernelEntry> argReduceKernels();
std::span<const KernelEntry> batchNormKernels();
std::span<const KernelEntry> crossEntropyKernels();
std::span<const KernelEntry> cumSumKernels();
std::span<const KernelEntry> detKernels();
std::span<const KernelEntry> groupNormKernels();
std::span<const KernelEntry> inverseKernels();
std::span<const KernelEntry> layerNormKernels();
std::span<const KernelEntry> lpNormalizationKernels();
std::span<const KernelEntry> lrnKernels();
std::span<const KernelEntry> meanVarianceKernels();
std::span<const KernelEntry> reduceKernels();
std::span<const KernelEntry> softmaxKernels();

}  // namespace stepscope::reference
