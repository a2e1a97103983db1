#include "kernels/reference/kernel_list.h"
#include "kernels/reference/movement/common.h"

namespace stepscope::reference {

#define SS_KERNEL(domain, op, function, kind, file) Status function(const KernelSpec& spec, const KernelCall& call);
#define SS_FACTORY(domain, op, make, file) Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec);
#include "kernels/reference/movement/kernels.inc"
#undef SS_KERNEL
#undef SS_FACTORY

std::span<const KernelEntry> movementKernels() {
  static constexpr KernelEntry kEntries[] = {
#define SS_KERNEL(domain, op, function, kind, file) {domain, op, kind<function>},
#define SS_FACTORY(domain, op, make, file) {domain, op, make},
#include "kernels/reference/movement/kernels.inc"
#undef SS_KERNEL
#undef SS_FACTORY
  };
  return kEntries;
}

}  // namespace stepscope::reference
