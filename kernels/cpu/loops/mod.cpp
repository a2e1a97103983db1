// Mod of floats: the rest of a division is exact in double while the quotient has at most 29 bits; the standard library has
// the others.
#include <array>
#include <cmath>

#include "kernels/cpu/loops/broadcast.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 256;
constexpr double kLargestQuotient = 0x1p29;

// Towards the sign of b where the rest has the other one, unless it is to keep that of a.
template <bool kTruncate>
SS_INLINE float signedRest(double rest, double b) {
  return static_cast<float>(!kTruncate && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

// Whether all quotients are within reach; false too where one is no number.
template <bool kTruncate, int kStepA, int kStepB>
SS_CLONES bool restBlock(const float* a, const float* b, float* y, std::int64_t count) {
  int good = 1;
#pragma omp simd reduction(& : good)
  for (std::int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(a[i * kStepA]), z = static_cast<double>(b[i * kStepB]), quotient = x / z;
    good &= static_cast<int>(std::fabs(quotient) < kLargestQuotient) & static_cast<int>(std::fabs(z) < 0x1p200);
    // A quotient just below an integer may have been rounded to it: one step back.
    const double size = std::fabs(z), back = std::fabs(x) - std::trunc(std::fabs(quotient)) * size;
    y[i] = signedRest<kTruncate>(std::copysign(back < 0 ? back + size : back, x), z);
  }
  return good != 0;
}

template <bool kTruncate>
void restLoop(const void* left, std::int64_t stepA, const void* right, std::int64_t stepB, void* result,
              std::int64_t count) {
  const auto *a = static_cast<const float*>(left), *b = static_cast<const float*>(right);
  auto* y = static_cast<float*>(result);
  std::array<float, kBlock> rest;  // y may lie over an operand
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t n = std::min(kBlock, count - at);
    const float *from = a + at * stepA, *by = b + at * stepB;
    const auto block = stepB == 0 ? (stepA == 0 ? restBlock<kTruncate, 0, 0> : restBlock<kTruncate, 1, 0>)
                                  : (stepA == 0 ? restBlock<kTruncate, 0, 1> : restBlock<kTruncate, 1, 1>);
    const bool good = block(from, by, rest.data(), n);
    for (std::int64_t i = 0; i < n && !good; ++i) {
      const auto x = static_cast<double>(from[i * stepA]), z = static_cast<double>(by[i * stepB]);
      rest[static_cast<std::size_t>(i)] = signedRest<kTruncate>(std::fmod(x, z), z);
    }
    std::copy_n(rest.begin(), n, y + at);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeMod(const KernelSpec& spec) {
  if (spec.inputs.size() != 2 || !takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "elements other than float32");
  return makePairKernel(spec, spec.attrs.integer("fmod", 0) != 0 ? restLoop<true> : restLoop<false>);
}

}  // namespace stepscope::cpu
