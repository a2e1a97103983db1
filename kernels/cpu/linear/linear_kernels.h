// The fast kernels of this group, all f32: factories for kernel_list.cpp. Other dtypes, empty operands and what oneDNN does
// not take give kUnsupported, which falls back to the reference kernel.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::cpu {

Result<std::unique_ptr<Kernel>> makeMatMul(const KernelSpec& spec);  // MatMul, BatchedMatMul, FusedMatMul
Result<std::unique_ptr<Kernel>> makeGemm(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeConv(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeConvInputGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeConvWeightGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeConvTranspose(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeConvTransposeInputGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeConvTransposeWeightGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeMaxPool(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeMaxPoolGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeAveragePool(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeAveragePoolGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeCol2Im(const KernelSpec& spec);  // constant block
Result<std::unique_ptr<Kernel>> makeCol2ImGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeLpPool(const KernelSpec& spec);      // powers 1 and 2
Result<std::unique_ptr<Kernel>> makeLpPoolGrad(const KernelSpec& spec);  // and that of GlobalLpPool
Result<std::unique_ptr<Kernel>> makeMaxUnpool(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeMaxUnpoolGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGlobalAveragePool(const KernelSpec& spec);

}  // namespace stepscope::cpu
