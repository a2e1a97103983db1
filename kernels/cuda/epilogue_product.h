// stepscope.EpilogueProduct (engine/ops/linear/epilogue_product.cpp): a product with Gelu, its slope, or the sums of an
// operand. A library of the device computes all of it in one call where it has an algorithm for that; else the product, the
// elementwise op and the sums are launched one after the other, each by the kernel of its own op.
#pragma once

#include "kernels/kernel.h"

namespace stepscope::cuda {

struct EpilogueParts {
  KernelFactory product, elementwise, reduce;  // of float32; low types come to them between casts
};

// Errors: kUnsupported for operands that a part does not take, or sums of an operand with more than two axes.
Result<std::unique_ptr<Kernel>> makeProductWithEpilogue(const KernelSpec& spec, const EpilogueParts& parts);

}  // namespace stepscope::cuda
