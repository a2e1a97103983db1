// Accumulate, and SquareSum of a low type: the gradient, in float32 or a low type, joins the sum of its round and, where
// clipping asks for it, the squares of the new sum are added up in the same pass over memory. Chunks are cut by the shape
// alone, so the sum of squares does not depend on the threads.
#include <array>

#include "kernels/cpu/loops/low_operands.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 1024, kChunk = 16 * kBlock;

SS_CLONES void addBlock(const float* sum, const float* gradient, float* next, std::int64_t n) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) next[i] = sum[i] + gradient[i];
}

SS_CLONES double squaresOf(const float* x, std::int64_t n) {
  double a = 0, b = 0;  // one sum would wait for each of its additions
  const std::int64_t half = n / 2;
#pragma omp simd reduction(+ : a, b)
  for (std::int64_t i = 0; i < half; ++i) {
    a += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    b += static_cast<double>(x[i + half]) * static_cast<double>(x[i + half]);
  }
  for (std::int64_t i = 2 * half; i < n; ++i) a += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return a + b;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeAccumulate(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !spec.inputPresent(1) || !takesInput(spec, 2, DType::kBool) || !takesScalar(spec, 2) ||
      !takesOutput(spec, 0) || !takesOptionalOutput(spec, 1, 1))
    return notTaken(spec, "operands other than float32 and a flag");
  const std::int64_t count = elementCount(spec.inputs[0].dims), chunks = (count + kChunk - 1) / kChunk;
  if (!takesAnyFloat(spec.inputs[1], count) || elementCount(spec.outputs[0].dims) != count)
    return notTaken(spec, "operands of other sizes");
  const bool squares = spec.outputPresent(1);
  const auto body = [=, threads = spec.threads](const KernelCall& call) {
    const float* sum = input(call, 0);
    const FloatSource gradient(call.inputs[1]);
    const bool first = *input<bool>(call, 2);
    float* next = output(call, 0);
    auto* partial = reinterpret_cast<double*>(call.workspace.data());
    parallelRows(chunks, kChunk, threads, [&](std::int64_t begin, std::int64_t end) {
      std::array<float, kBlock> wide;
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        double own = 0;
        for (std::int64_t at = chunk * kChunk, last = std::min(at + kChunk, count); at < last; at += kBlock) {
          const std::int64_t n = std::min(kBlock, last - at);
          const float* g = gradient.read(at, n, wide.data());
          if (first)
            std::copy_n(g, n, next + at);
          else
            addBlock(sum + at, g, next + at, n);
          if (squares) own += squaresOf(next + at, n);
        }
        if (squares) partial[chunk] = own;
      }
    });
    if (!squares) return;
    double total = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) total += partial[chunk];
    *output(call, 1) = static_cast<float>(total);
  };
  return makeBodyKernel("vector loop", body, squares ? static_cast<std::size_t>(chunks) * sizeof(double) : 0);
}

Result<std::unique_ptr<Kernel>> makeLowSquareSum(const KernelSpec& spec) {
  const std::int64_t count = elementCount(spec.inputs[0].dims), chunks = (count + kChunk - 1) / kChunk;
  if (!takesAnyFloat(spec.inputs[0], count) || !takesOutput(spec, 0) || elementCount(spec.outputs[0].dims) != 1)
    return notTaken(spec, "operands other than a tensor and a float32 scalar");
  const auto body = [=, threads = spec.threads](const KernelCall& call) {
    const FloatSource x(call.inputs[0]);
    auto* partial = reinterpret_cast<double*>(call.workspace.data());
    parallelRows(chunks, kChunk, threads, [&](std::int64_t begin, std::int64_t end) {
      std::array<float, kBlock> wide;
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        partial[chunk] = 0;
        for (std::int64_t at = chunk * kChunk, last = std::min(at + kChunk, count); at < last; at += kBlock) {
          const std::int64_t n = std::min(kBlock, last - at);
          partial[chunk] += squaresOf(x.read(at, n, wide.data()), n);
        }
      }
    });
    double total = 0;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) total += partial[chunk];
    *output(call, 0) = static_cast<float>(total);
  };
  return makeBodyKernel("vector loop", body, static_cast<std::size_t>(chunks) * sizeof(double));
}

}  // namespace stepscope::cpu
