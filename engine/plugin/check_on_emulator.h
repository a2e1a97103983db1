// A kernel of a plugin for "cuda" next to its kernel for the CPU: on the emulator, in three orders of threads and blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/kernel_registry.h"
#include "kernels/random.h"

namespace stepscope {

// Runs the spec on `inputs` and compares with what the CPU made of them and of the key; `inPlace`: bit i: once more with
// output 0 in the memory of input i, where type and extents are the same. The text is what passed. Errors: what the emulator
// finds, naming function, block and thread; results that differ from `expected`, or from one order to the next though the
// kernel says that they do not.
Result<std::string> checkOnEmulator(const KernelRegistry& kernels, const KernelSpec& spec, std::span<const Tensor> inputs,
                                    std::span<const Tensor> expected, std::uint32_t hostInputs, std::uint32_t inPlace,
                                    const RandomKey& random);

}  // namespace stepscope
