#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/linear/linear_kernels.h"

namespace stepscope::cpu {

std::span<const KernelEntry> linearKernels() {
  static constexpr KernelEntry kEntries[] = {
#define SS_KERNEL(domain, op, make, layouts, file) {domain, op, make, layouts},
#include "kernels/cpu/linear/kernels.inc"
#undef SS_KERNEL
  };
  return kEntries;
}

}  // namespace stepscope::cpu
