#include <array>

#include "kernels/reference/kernel_list.h"
#include "kernels/reference/linear/linear_kernels.h"

namespace stepscope::reference {

std::span<const KernelEntry> linearKernels() {
  static constexpr std::array kKernels{
      KernelEntry{"", "AffineGrid", plain<affineGrid>},
      KernelEntry{"", "AveragePool", plain<averagePool>},
      KernelEntry{"stepscope", "AveragePoolGrad", plain<averagePoolGrad>},
      KernelEntry{"stepscope", "BatchedMatMul", plain<matMul>},
      KernelEntry{"", "Conv", plain<conv>},
      KernelEntry{"stepscope", "ConvInputGrad", plain<convInputGrad>},
      KernelEntry{"", "ConvInteger", plain<convInteger>},
      KernelEntry{"", "ConvTranspose", plain<convTranspose>},
      KernelEntry{"stepscope", "ConvTransposeInputGrad", plain<convTransposeInputGrad>},
      KernelEntry{"stepscope", "ConvTransposeWeightGrad", plain<convTransposeWeightGrad>},
      KernelEntry{"stepscope", "ConvWeightGrad", plain<convWeightGrad>},
      KernelEntry{"", "Einsum", plain<einsum>},
      KernelEntry{"stepscope", "EinsumGrad", plain<einsumGrad>},
      KernelEntry{"com.microsoft", "FusedMatMul", plain<matMul>},
      KernelEntry{"", "Gemm", plain<gemm>},
      KernelEntry{"", "GlobalAveragePool", plain<globalAveragePool>},
      KernelEntry{"", "GlobalLpPool", plain<globalLpPool>},
      KernelEntry{"", "GlobalMaxPool", plain<globalMaxPool>},
      KernelEntry{"stepscope", "GlobalMaxPoolGrad", plain<globalMaxPoolGrad>},
      KernelEntry{"", "GridSample", plain<gridSample>},
      KernelEntry{"stepscope", "GridSampleGridGrad", plain<gridSampleGridGrad>},
      KernelEntry{"stepscope", "GridSampleInputGrad", plain<gridSampleInputGrad>},
      KernelEntry{"", "GRU", plain<gru>},
      KernelEntry{"stepscope", "GRUGrad", plain<gruGrad>},
      KernelEntry{"", "LpPool", plain<lpPool>},
      KernelEntry{"stepscope", "LpPoolGrad", plain<lpPoolGrad>},
      KernelEntry{"", "LSTM", plain<lstm>},
      KernelEntry{"stepscope", "LSTMGrad", plain<lstmGrad>},
      KernelEntry{"", "MatMul", plain<matMul>},
      KernelEntry{"", "MatMulInteger", plain<matMulInteger>},
      KernelEntry{"", "MaxPool", plain<maxPool>},
      KernelEntry{"stepscope", "MaxPoolGrad", plain<maxPoolGrad>},
      KernelEntry{"", "MaxUnpool", plain<maxUnpool>},
      KernelEntry{"stepscope", "MaxUnpoolGrad", plain<maxUnpoolGrad>},
      KernelEntry{"stepscope", "Product", plain<matMul>},
      KernelEntry{"", "QLinearConv", plain<qLinearConv>},
      KernelEntry{"", "QLinearMatMul", plain<qLinearMatMul>},
      KernelEntry{"", "Resize", plain<resize>},
      KernelEntry{"stepscope", "ResizeGrad", plain<resizeGrad>},
      KernelEntry{"", "RNN", plain<rnn>},
      KernelEntry{"stepscope", "RNNGrad", plain<rnnGrad>},
      KernelEntry{"", "RoiAlign", plain<roiAlign>},
      KernelEntry{"stepscope", "RoiAlignGrad", plain<roiAlignGrad>},
  };
  return kKernels;
}

}  // namespace stepscope::reference
