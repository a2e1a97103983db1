// The fast kernels of this group, all f32: factories for kernel_list.cpp. Contracts are those of the reference twins.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::cpu {

Result<std::unique_ptr<Kernel>> makeAffineGrid(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGridSample(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGridSampleGridGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGridSampleInputGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeRoiAlign(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeRoiAlignGrad(const KernelSpec& spec);

}  // namespace stepscope::cpu
