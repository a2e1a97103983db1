#include "kernels/reference/reduction/kernels.h"

#include <vector>

namespace stepscope::reference {

std::span<const KernelEntry> reductionKernels() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> entries;
#define SS_FAMILY(kernels, file) entries.insert(entries.end(), kernels().begin(), kernels().end());
#include "kernels/reference/reduction/kernels.inc"
#undef SS_FAMILY
    return entries;
  }();
  return all;
}

}  // namespace stepscope::reference
