#include <array>

#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/linear/linear_kernels.h"

namespace stepscope::cpu {

std::span<const KernelEntry> linearKernels() {
  static constexpr std::array kKernels{
      KernelEntry{"", "AveragePool", makeAveragePool},
      KernelEntry{"", "Conv", makeConv},
      KernelEntry{"", "ConvTranspose", makeConvTranspose},
      KernelEntry{"", "Gemm", makeGemm},
      KernelEntry{"", "GlobalAveragePool", makeGlobalAveragePool},
      KernelEntry{"", "MatMul", makeMatMul},
      KernelEntry{"", "MaxPool", makeMaxPool},
      KernelEntry{"com.microsoft", "FusedMatMul", makeMatMul},
      KernelEntry{"stepscope", "AveragePoolGrad", makeAveragePoolGrad},
      KernelEntry{"stepscope", "BatchedMatMul", makeMatMul},
      KernelEntry{"stepscope", "ConvInputGrad", makeConvInputGrad},
      KernelEntry{"stepscope", "ConvTransposeInputGrad", makeConvTransposeInputGrad},
      KernelEntry{"stepscope", "ConvTransposeWeightGrad", makeConvTransposeWeightGrad},
      KernelEntry{"stepscope", "ConvWeightGrad", makeConvWeightGrad},
      KernelEntry{"stepscope", "MaxPoolGrad", makeMaxPoolGrad},
      KernelEntry{"stepscope", "Product", makeMatMul},
  };
  return kKernels;
}

}  // namespace stepscope::cpu
