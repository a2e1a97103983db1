// The fast CPU kernels, in groups as the ops are. A factory answers kUnsupported for what it does not take (other dtypes,
// empty operands), and the node falls back to the reference kernel.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::cpu {

// One list per folder; kernel_list.cpp joins them.
std::span<const KernelEntry> channelKernels();    // normalisation over batch and space, layouts
std::span<const KernelEntry> linearKernels();     // matrix products, convolution, pooling
std::span<const KernelEntry> loopKernels();       // vectorised loops: elementwise, transposition, optimizer
std::span<const KernelEntry> recurrentKernels();  // LSTM, GRU, RNN
std::span<const KernelEntry> samplingKernels();   // places computed from data: GridSample, RoiAlign

}  // namespace stepscope::cpu
