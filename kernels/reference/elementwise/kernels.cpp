#include <vector>

#include "kernels/reference/elementwise/families.h"

namespace stepscope::reference {

std::span<const KernelEntry> elementwiseKernels() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> entries;
    for (const auto family :
         {activationKernels(), binaryKernels(), castKernels(), compareKernels(), optimizerKernels(), pointwiseKernels(),
          previewOptimizerKernels(), quantizeKernels(), randomKernels(), selectKernels(), unaryKernels(), variadicKernels()})
      entries.insert(entries.end(), family.begin(), family.end());
    return entries;
  }();
  return all;
}

}  // namespace stepscope::reference
