#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

std::span<const KernelEntry> movementKernels() {
  return {};
}

}  // namespace stepscope::reference
