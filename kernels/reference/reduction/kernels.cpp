#include "kernels/reference/reduction/kernels.h"

#include <vector>

namespace stepscope::reference {

std::span<const KernelEntry> reductionKernels() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> entries;
    for (const auto list : {argReduceKernels(), batchNormKernels(), crossEntropyKernels(), cumSumKernels(), detKernels(),
                            groupNormKernels(), inverseKernels(), layerNormKernels(), lpNormalizationKernels(), lrnKernels(),
                            meanVarianceKernels(), reduceKernels(), softmaxKernels()})
      entries.insert(entries.end(), list.begin(), list.end());
    return entries;
  }();
  return all;
}

}  // namespace stepscope::reference
