#include "kernels/cpu/kernel_list.h"

namespace stepscope {

std::span<const KernelEntry> cpuKernels() {
  static const std::vector<KernelEntry> all = [] {
    std::vector<KernelEntry> kernels;
    for (const auto list :
         {cpu::channelKernels(), cpu::linearKernels(), cpu::loopKernels(), cpu::recurrentKernels(), cpu::samplingKernels()})
      kernels.insert(kernels.end(), list.begin(), list.end());
    return kernels;
  }();
  return all;
}

}  // namespace stepscope
