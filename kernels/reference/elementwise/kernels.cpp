#include <vector>

#include "kernels/reference/elementwise/families.h"

namespace stepscope::reference {

std::span<const KernelEntry> elementwiseKernels() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> entries;
#define SS_FAMILY(kernels, file) entries.insert(entries.end(), kernels().begin(), kernels().end());
#include "kernels/reference/elementwise/kernels.inc"
#undef SS_FAMILY
    return entries;
  }();
  return all;
}

}  // namespace stepscope::reference
