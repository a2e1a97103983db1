#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

std::span<const KernelEntry> elementwiseKernels() {
  return {};
}

}  // namespace stepscope::reference
