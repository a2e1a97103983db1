#include <array>

#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/recurrent/recurrent.h"

namespace stepscope::cpu {

std::span<const KernelEntry> recurrentKernels() {
  static constexpr std::array kKernels{
      KernelEntry{"", "GRU", makeRecurrent},
      KernelEntry{"", "LSTM", makeRecurrent},
      KernelEntry{"", "RNN", makeRecurrent},
      KernelEntry{"stepscope", "GRUGrad", makeRecurrentGradient},
      KernelEntry{"stepscope", "LSTMGrad", makeRecurrentGradient},
      KernelEntry{"stepscope", "RNNGrad", makeRecurrentGradient},
  };
  return kKernels;
}

}  // namespace stepscope::cpu
