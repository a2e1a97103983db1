// The fast kernels of this group, all f32: factories for kernel_list.cpp. Other dtypes, empty operands and what oneDNN does
// not take give kUnsupported, which falls back to the reference kernel.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::cpu {

// The factories, make<Op>.
#define SS_KERNEL(domain, op, make, layouts, file) Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec);
#include "kernels/cpu/linear/kernels.inc"
#undef SS_KERNEL

}  // namespace stepscope::cpu
