// The families of elementwise reference kernels; kernels.cpp joins them. One line per op in the list of its family.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/reference/kernel_list.h"

namespace stepscope::reference {

// The factory for a plain function that reads the first kInputs inputs and writes output 0: refuses a node that leaves one
// out.
template <std::size_t kInputs, ReferenceFunction kFunction>
Result<std::unique_ptr<Kernel>> reading(const KernelSpec& spec) {
  for (std::size_t i = 0; i < kInputs; ++i)
    if (!spec.inputPresent(i)) return invalid(spec.op + ": input " + std::to_string(i) + " is absent; it is required");
  if (!spec.outputPresent(0)) return invalid(spec.op + ": output 0 is absent; it is required");
  return makeFunctionKernel(spec, kFunction, "reference");
}

std::span<const KernelEntry> activationKernels();        // functions of one number with attributes: Elu, Gelu, Clip …
std::span<const KernelEntry> binaryKernels();            // arithmetic, PRelu, bitwise
std::span<const KernelEntry> castKernels();              // Cast, CastLike, Identity
std::span<const KernelEntry> compareKernels();           // Equal, Less …, And, Or, Xor, Not, IsNaN, IsInf
std::span<const KernelEntry> optimizerKernels();         // updates of parameters, SquareSum
std::span<const KernelEntry> pointwiseKernels();         // stepscope.Pointwise
std::span<const KernelEntry> previewOptimizerKernels();  // ai.onnx.preview.training
std::span<const KernelEntry> quantizeKernels();          // QuantizeLinear and relatives
std::span<const KernelEntry> randomKernels();            // Dropout, RandomNormal, Bernoulli …
std::span<const KernelEntry> selectKernels();            // Where, Select, Gate, StringConcat
std::span<const KernelEntry> unaryKernels();             // functions of one number
std::span<const KernelEntry> variadicKernels();          // Max, Min, Sum, Mean

}  // namespace stepscope::reference
