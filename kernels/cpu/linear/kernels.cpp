#include <array>

#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/linear/linear_kernels.h"

namespace stepscope::cpu {

std::span<const KernelEntry> linearKernels() {
  static constexpr std::array kKernels{
      KernelEntry{"", "AveragePool", makeAveragePool, true},
      KernelEntry{"", "Col2Im", makeCol2Im},
      KernelEntry{"", "Conv", makeConv, true},
      KernelEntry{"", "ConvTranspose", makeConvTranspose, true},
      KernelEntry{"", "Gemm", makeGemm},
      KernelEntry{"", "GlobalAveragePool", makeGlobalAveragePool, true},
      KernelEntry{"", "LpPool", makeLpPool},
      KernelEntry{"", "MatMul", makeMatMul},
      KernelEntry{"", "MaxPool", makeMaxPool, true},
      KernelEntry{"", "MaxUnpool", makeMaxUnpool},
      KernelEntry{"com.microsoft", "FusedMatMul", makeMatMul},
      KernelEntry{"stepscope", "AveragePoolGrad", makeAveragePoolGrad, true},
      KernelEntry{"stepscope", "BatchedMatMul", makeMatMul},
      KernelEntry{"stepscope", "Col2ImGrad", makeCol2ImGrad},
      KernelEntry{"stepscope", "ConvInputGrad", makeConvInputGrad, true},
      KernelEntry{"stepscope", "ConvTransposeInputGrad", makeConvTransposeInputGrad, true},
      KernelEntry{"stepscope", "ConvTransposeWeightGrad", makeConvTransposeWeightGrad, true},
      KernelEntry{"stepscope", "ConvWeightGrad", makeConvWeightGrad, true},
      KernelEntry{"stepscope", "LpPoolGrad", makeLpPoolGrad},
      KernelEntry{"stepscope", "MaxPoolGrad", makeMaxPoolGrad, true},
      KernelEntry{"stepscope", "MaxUnpoolGrad", makeMaxUnpoolGrad},
      KernelEntry{"stepscope", "Product", makeMatMul},
  };
  return kKernels;
}

}  // namespace stepscope::cpu
