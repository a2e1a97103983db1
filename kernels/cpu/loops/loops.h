// Fast f32 kernels that are plain loops: vectorised by the compiler for the instruction sets of SS_CLONES (picked when the
// program starts), split into static parts by OpenMP. Every element is computed by one thread, so results do not depend on
// the number of threads. Contracts are those of the reference twins.
#pragma once

#include "kernels/kernel.h"

// One copy of a function per instruction set. The sanitizers instrument the resolver too early, so they get one copy.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SS_CLONES
#else
#define SS_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

namespace stepscope::cpu {

// Below this many elements a second thread costs more than it brings.
inline constexpr std::int64_t kParallelElements = 1 << 15;

Result<std::unique_ptr<Kernel>> makeBinary(const KernelSpec& spec);      // Add Sub Mul Div, equal shapes, scalars and rows
Result<std::unique_ptr<Kernel>> makeAdamUpdate(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makePointwise(const KernelSpec& spec);   // chains of elementwise steps
Result<std::unique_ptr<Kernel>> makeTranspose(const KernelSpec& spec);   // elements of 4 bytes

std::span<const KernelEntry> loopKernels();

}  // namespace stepscope::cpu
