#include "kernels/kernel.h"

namespace stepscope {

std::span<const KernelEntry> cpuKernels() {
  return {};
}

}  // namespace stepscope
