#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/linear/linear_kernels.h"

namespace stepscope::cpu {

std::span<const KernelEntry> linearKernels() {
  enum Takes { plain, blocked, any };
  static constexpr KernelEntry kEntries[] = {
#define SS_KERNEL(name, type, factory, takes, file) \
  {.domain = name, .op = type, .make = factory, .layouts = takes != plain, .channelsLast = takes == any},
#define SS_TABLE  // of a small build: those of its list
#include "kernels/cpu/linear/kernels.inc"
#undef SS_TABLE
#undef SS_KERNEL
  };
  return kEntries;
}

}  // namespace stepscope::cpu
