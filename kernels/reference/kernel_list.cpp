#include "kernels/reference/kernel_list.h"

namespace stepscope {

std::span<const KernelEntry> referenceKernels() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> entries;
    for (const auto list : {reference::elementwiseKernels(), reference::reductionKernels(), reference::movementKernels(),
                            reference::linearKernels()})
      entries.insert(entries.end(), list.begin(), list.end());
    return entries;
  }();
  return all;
}

}  // namespace stepscope
