// The language that kernels are written in: CUDA C++ through names of our own, so that nvcc compiles a .cu file for a GPU
// and the host compiler compiles the same file for the emulator (kernels/emulated), which checks every access.
//
//   SS_GLOBAL void f(…)         a kernel: called by the threads of a grid of blocks, both one-dimensional
//   SS_DEVICE T f(…)            a function that kernels call
//   SS_ANY T f(…)               a function that kernels and the host call
//   SS_SHARED(T, name, count)   an array of the block; it holds nothing at first; in all threads or in none, in one order
//   Global<T>                   elements of an operand, 64-bit indices: x[i]; x.four(i) and x.setFour(i, v) move four
//                               at once, i a multiple of 4; x.atomicAdd(i, v)
//   loadEight(x, i, to), storeEight(y, i, from)   eight elements, i a multiple of 8, in moves of 16 bytes where they have 2
//   threadIndex, blockSize, blockIndex, gridSize
//   syncThreads(), syncThreadsOr(vote)   all threads of the block; also orders their memory accesses
//   shuffle, shuffleXor, ballot, syncWarp   lanes of the mask; only syncWarp orders memory accesses
//   Half, BFloat                16-bit floats; arithmetic is in float
//   Complaint                   tells the host of an operand with a value it must not have; the first position counts
//
// On the host, a Launcher puts a launch together: gpu.run("name", gpu::function<kernel>, blocks, threads,
// gpu.in<float>(0), gpu.out<float>(0)). Operands are declared for one launch, with what it does to them (Access); run() puts
// it on the stream of the call. Kernels and the types of their parameters stand in a named namespace (`inline namespace
// softmax_cu`): a GPU finds them by their names, which must be the same for both compilers. A parameter has the same bytes
// in both.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/nvidia_body.h"
#elif defined(SS_KERNEL_BODY)  // of a test
#include SS_KERNEL_BODY
#else
#include "kernels/emulated/body.h"
#endif
