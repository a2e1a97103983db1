#include "kernels/cpu/loops/loops.h"

namespace stepscope::cpu {

Result<std::unique_ptr<Kernel>> makeDropoutPart(const KernelSpec& spec);

std::span<const KernelEntry> loopKernels() {
  static constexpr KernelEntry kEntries[] = {
#define SS_KERNEL(domain, op, make, layouts, parts, file) \
  {domain, op, make, layouts, kAnyDType, nullptr, IndependentParts::parts},
#define SS_TABLE  // of a small build: those of its list
#include "kernels/cpu/loops/kernels.inc"
#undef SS_TABLE
#undef SS_KERNEL
      {"stepscope", "DropoutPart", makeDropoutPart},
  };
  return kEntries;
}

}  // namespace stepscope::cpu
