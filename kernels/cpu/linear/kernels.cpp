#include <array>

#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/linear/linear_kernels.h"

namespace stepscope::cpu {

std::span<const KernelEntry> linearKernels() {
  static constexpr std::array kKernels{
      KernelEntry{"", "AveragePool", makeAveragePool, true},
      KernelEntry{"", "Conv", makeConv, true},
      KernelEntry{"", "ConvTranspose", makeConvTranspose, true},
      KernelEntry{"", "Gemm", makeGemm},
      KernelEntry{"", "GlobalAveragePool", makeGlobalAveragePool, true},
      KernelEntry{"", "MatMul", makeMatMul},
      KernelEntry{"", "MaxPool", makeMaxPool, true},
      KernelEntry{"com.microsoft", "FusedMatMul", makeMatMul},
      KernelEntry{"stepscope", "AveragePoolGrad", makeAveragePoolGrad, true},
      KernelEntry{"stepscope", "BatchedMatMul", makeMatMul},
      KernelEntry{"stepscope", "ConvInputGrad", makeConvInputGrad, true},
      KernelEntry{"stepscope", "ConvTransposeInputGrad", makeConvTransposeInputGrad, true},
      KernelEntry{"stepscope", "ConvTransposeWeightGrad", makeConvTransposeWeightGrad, true},
      KernelEntry{"stepscope", "ConvWeightGrad", makeConvWeightGrad, true},
      KernelEntry{"stepscope", "MaxPoolGrad", makeMaxPoolGrad, true},
      KernelEntry{"stepscope", "Product", makeMatMul},
  };
  return kKernels;
}

}  // namespace stepscope::cpu
