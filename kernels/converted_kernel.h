// A kernel of float32 for operands in float16 or bfloat16: converts them in workspace memory before and behind it. The
// arithmetic is that of float32 and every result is rounded once.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/kernel.h"

namespace stepscope {

class KernelRegistry;

// Whether an operand is in float16 or bfloat16, extents are known, and the op is one that computes.
bool canBeConverted(const KernelSpec& spec);
// The spec with float32 in their place, constants included.
KernelSpec widened(const KernelSpec& spec);
// `inner` is a kernel for widened(spec). Errors: those of making the casts, which are kernels of the device too.
Result<std::unique_ptr<Kernel>> makeConvertedKernel(const KernelRegistry& kernels, std::string_view device, KernelSpec spec,
                                                    std::unique_ptr<Kernel> inner);

}  // namespace stepscope
