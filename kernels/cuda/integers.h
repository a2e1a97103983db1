// Arithmetic and comparisons of int32 and int64, and Where of integers and bools: what elementwise.cu leaves to integers.cu.
#pragma once

#include <memory>

#include "kernels/kernel.h"

namespace stepscope::cuda {

// Whether the op has a form for integers and the operands are some. Then makeIntegers answers for it.
bool isOfIntegers(const KernelSpec& spec);
// Errors: kUnsupported for operands that it does not take.
Result<std::unique_ptr<Kernel>> makeIntegers(const KernelSpec& spec);

}  // namespace stepscope::cuda
