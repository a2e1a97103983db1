#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

std::span<const KernelEntry> reductionKernels() {
  return {};
}

}  // namespace stepscope::reference
