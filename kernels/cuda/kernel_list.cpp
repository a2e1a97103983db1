#include "kernels/cuda/support.h"
#include "kernels/emulated_device.h"

namespace stepscope {

std::span<const KernelEntry> cudaKernels() {
  using namespace cuda;
  static constexpr KernelEntry kEntries[] = {
#define SS_KERNEL(domain, op, make, file) {domain, op, make},
#include "kernels/cuda/kernels.inc"
#undef SS_KERNEL
  };
  return kEntries;
}

}  // namespace stepscope
