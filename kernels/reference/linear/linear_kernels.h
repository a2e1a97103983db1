// The reference kernels of this group: functions of the spec and the call, listed in kernels.cpp.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::reference {

Status affineGrid(const KernelSpec& spec, const KernelCall& call);
Status averagePool(const KernelSpec& spec, const KernelCall& call);
Status averagePoolGrad(const KernelSpec& spec, const KernelCall& call);
Status conv(const KernelSpec& spec, const KernelCall& call);
Status convInputGrad(const KernelSpec& spec, const KernelCall& call);
Status convInteger(const KernelSpec& spec, const KernelCall& call);
Status convTranspose(const KernelSpec& spec, const KernelCall& call);
Status convTransposeInputGrad(const KernelSpec& spec, const KernelCall& call);
Status convTransposeWeightGrad(const KernelSpec& spec, const KernelCall& call);
Status convWeightGrad(const KernelSpec& spec, const KernelCall& call);
Status einsum(const KernelSpec& spec, const KernelCall& call);
Status einsumGrad(const KernelSpec& spec, const KernelCall& call);
Status gemm(const KernelSpec& spec, const KernelCall& call);
Status globalAveragePool(const KernelSpec& spec, const KernelCall& call);
Status globalLpPool(const KernelSpec& spec, const KernelCall& call);
Status globalMaxPool(const KernelSpec& spec, const KernelCall& call);
Status globalMaxPoolGrad(const KernelSpec& spec, const KernelCall& call);
Status gridSample(const KernelSpec& spec, const KernelCall& call);
Status gridSampleGridGrad(const KernelSpec& spec, const KernelCall& call);
Status gridSampleInputGrad(const KernelSpec& spec, const KernelCall& call);
Status gru(const KernelSpec& spec, const KernelCall& call);
Status gruGrad(const KernelSpec& spec, const KernelCall& call);
Status lpPool(const KernelSpec& spec, const KernelCall& call);
Status lpPoolGrad(const KernelSpec& spec, const KernelCall& call);
Status lstm(const KernelSpec& spec, const KernelCall& call);
Status lstmGrad(const KernelSpec& spec, const KernelCall& call);
Status matMul(const KernelSpec& spec, const KernelCall& call);
Status matMulInteger(const KernelSpec& spec, const KernelCall& call);
Status maxPool(const KernelSpec& spec, const KernelCall& call);
Status maxPoolGrad(const KernelSpec& spec, const KernelCall& call);
Status maxUnpool(const KernelSpec& spec, const KernelCall& call);
Status maxUnpoolGrad(const KernelSpec& spec, const KernelCall& call);
Status qLinearConv(const KernelSpec& spec, const KernelCall& call);
Status qLinearMatMul(const KernelSpec& spec, const KernelCall& call);
Status resize(const KernelSpec& spec, const KernelCall& call);
Status resizeGrad(const KernelSpec& spec, const KernelCall& call);
Status rnn(const KernelSpec& spec, const KernelCall& call);
Status rnnGrad(const KernelSpec& spec, const KernelCall& call);
Status roiAlign(const KernelSpec& spec, const KernelCall& call);
Status roiAlignGrad(const KernelSpec& spec, const KernelCall& call);

}  // namespace stepscope::reference
