#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

std::span<const KernelEntry> linearKernels() {
  return {};
}

}  // namespace stepscope::reference
