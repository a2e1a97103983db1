// The reference kernels: plain loops for every op and every dtype, accumulating in double (in int64 for integers).
// They judge the fast kernels, run the f64 graph of finite differences and the thread sanitizer, and serve as the
// CPU kernel where no fast one exists.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::reference {

// The factory for a plain function.
template <ReferenceFunction kFunction>
Result<std::unique_ptr<Kernel>> plain(const KernelSpec& spec) {
  return makeFunctionKernel(spec, kFunction, "reference");
}

// One list per file group; kernel_list.cpp joins them.
std::span<const KernelEntry>
elementwiseKernels();                             // elementwise*.cpp, activations.cpp, cast, where, clip, random, optimizers
std::span<const KernelEntry> reductionKernels();  // reduce*, softmax, normalisation, losses and their gradients
std::span<const KernelEntry> movementKernels();   // shape, layout and indexing ops
std::span<const KernelEntry> linearKernels();     // matmul, gemm, conv, pool, einsum, resize, recurrent

}  // namespace stepscope::reference
