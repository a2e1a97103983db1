// The kernel of an instruction, and what its bits depend on.
#pragma once

#include <memory>
#include <string_view>

#include "kernels/kernel_registry.h"

namespace stepscope {

struct MadeKernel {
  std::unique_ptr<Kernel> kernel;
  Determinism determinism;
};

// `anyThreads` (option deterministic=threads): the bits must not depend on spec.threads. Sums are cut by size then
// (kernels/fixed_parts.h); a kernel whose verdict still names the number of threads is made again for one thread.
// Errors: those of KernelRegistry::make.
Result<MadeKernel> makeKernel(const KernelRegistry& kernels, std::string_view device, const KernelSpec& spec,
                              bool anyThreads);

}  // namespace stepscope
