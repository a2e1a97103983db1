#include "kernels/reference/kernel_list.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {

std::span<const KernelEntry> linearKernels() {
  static constexpr KernelEntry kEntries[] = {
#define SS_KERNEL(domain, op, function, kind, file) {domain, op, kind<function>},
#include "kernels/reference/linear/kernels.inc"
#undef SS_KERNEL
  };
  return kEntries;
}

}  // namespace stepscope::reference
