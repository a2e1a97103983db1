// Fast f32 kernels that are plain loops: vectorised by the compiler for the instruction sets of SS_CLONES (picked when the
// program starts), split into static parts by OpenMP. Every element is computed by one thread and sums are cut by the shape
// or by the number of threads, so results are the same on every run. Contracts are those of the reference twins.
#pragma once

#include "kernels/kernel.h"

// One copy of a function per instruction set. The sanitizers instrument the resolver too early, so they get one copy.
#ifdef SS_SANITIZED
#define SS_CLONES
#else
#define SS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

namespace stepscope::cpu {

// From this many elements on work is cut into as many parts as there are threads. The order of sums depends on it, so it
// stays as it is; how many threads compute the parts is another question (kernels/threads.h).
inline constexpr std::int64_t kParallelElements = 1 << 15;
// Results of this many bytes, not read soon, are written past the caches.
inline constexpr std::int64_t kStreamBytes = 1 << 20;

// The factories, make<Op>.
#define SS_KERNEL(domain, op, make, layouts, parts, file) Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec);
#include "kernels/cpu/loops/kernels.inc"
#undef SS_KERNEL

// The kernels of this folder.
std::span<const KernelEntry> loopKernels();

}  // namespace stepscope::cpu
