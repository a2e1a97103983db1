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

// The factories of this folder, by op; kUnsupported where the op's operands are not theirs.
Result<std::unique_ptr<Kernel>> makeAccumulate(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeAdamUpdate(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeAdamUpdates(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeArgReduce(const KernelSpec& spec);  // ArgMax ArgMin
Result<std::unique_ptr<Kernel>> makeBernoulli(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeBinary(
    const KernelSpec& spec);  // arithmetic f32 and int64; comparison; logic; all broadcasts
Result<std::unique_ptr<Kernel>> makeCast(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeClip(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeConcat(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeCrossEntropy(const KernelSpec& spec);  // and negative log likelihood; classes last
Result<std::unique_ptr<Kernel>> makeCrossEntropyGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeCumSum(const KernelSpec& spec);  // constant axis
Result<std::unique_ptr<Kernel>> makeDepthToSpace(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeDropout(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeExpand(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeFakeQuant(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGather(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGatherElements(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGatherElementsGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGatherGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGatherNd(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGatherNdGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGelu(const KernelSpec& spec);  // all forms, with a bias or without
Result<std::unique_ptr<Kernel>> makeGeluGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGlobalMaxPoolGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeGroupNorm(const KernelSpec& spec);  // and InstanceNormalization
Result<std::unique_ptr<Kernel>> makeGroupNormGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeHardmax(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeLambUpdate(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeLayerNorm(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeLayerNormGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeLpNormalization(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeLrn(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeLrnGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeMeanVariance(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeMod(const KernelSpec& spec);  // floats
Result<std::unique_ptr<Kernel>> makeOneHot(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makePad(const KernelSpec& spec);  // constant
Result<std::unique_ptr<Kernel>> makePadGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makePointwise(const KernelSpec& spec);  // chains of elementwise steps
Result<std::unique_ptr<Kernel>> makePow(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeQuantize(const KernelSpec& spec);      // and DequantizeLinear
Result<std::unique_ptr<Kernel>> makeRandomNormal(const KernelSpec& spec);  // and RandomNormalLike
Result<std::unique_ptr<Kernel>> makeRandomUniform(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeReduce(const KernelSpec& spec);  // constant axes
Result<std::unique_ptr<Kernel>> makeReduceProdGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeReduceSpace(const KernelSpec& spec);  // GlobalMaxPool GlobalLpPool
Result<std::unique_ptr<Kernel>> makeReduceToShape(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeResize(const KernelSpec& spec);  // the last two axes, constant scales or sizes
Result<std::unique_ptr<Kernel>> makeResizeGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeRmsNorm(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeRmsNormGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeScatterElements(
    const KernelSpec& spec);  // indices that agree with the data in all axes but one
Result<std::unique_ptr<Kernel>> makeScatterNd(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSgdUpdate(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSgdUpdates(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSkipLayerNorm(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSkipRmsNorm(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSlice(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSliceGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSoftmax(const KernelSpec& spec);  // and LogSoftmax
Result<std::unique_ptr<Kernel>> makeMaskedSoftmax(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSoftmaxGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSpaceToDepth(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSplit(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeSquareSum(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeTest(const KernelSpec& spec);  // IsNaN IsInf Not
Result<std::unique_ptr<Kernel>> makeTile(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeTileGrad(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeTopK(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeTranspose(const KernelSpec& spec);     // elements of 4 bytes
Result<std::unique_ptr<Kernel>> makeTrigonometry(const KernelSpec& spec);  // Sin Cos Tan, Sinh Cosh, and what undoes them
Result<std::unique_ptr<Kernel>> makeTrilu(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeUnary(const KernelSpec& spec);
Result<std::unique_ptr<Kernel>> makeVariadic(const KernelSpec& spec);  // Sum Mean Max Min
Result<std::unique_ptr<Kernel>> makeWhere(const KernelSpec& spec);

// The kernels of this folder.
std::span<const KernelEntry> loopKernels();

}  // namespace stepscope::cpu
