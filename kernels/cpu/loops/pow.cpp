// Pow: exponents 2, 3, 1, 0.5, -0.5, -1, 0 that are one element directly; others as e^(b log a) in double, and by std::pow where that
// has no meaning (bases that are not positive and finite).
#include <cmath>

#include "kernels/cpu/loops/broadcast.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

// log and exp in double, to about 1e-11: far below the rounding of a float result.
SS_INLINE double logOfPositive(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);  // unsigned: what is not positive, whose result is not used, wraps
  const std::int64_t e = static_cast<std::int64_t>(bits - 0x3fe6a09e667f3bcdU) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(e) << 52));
  const double z = (m - 1) / (m + 1), s = z * z;  // log(m) = 2 atanh(z), |z| < 0.1716
  double p = 1.0 / 15;
  p = p * s + 1.0 / 13;
  p = p * s + 1.0 / 11;
  p = p * s + 1.0 / 9;
  p = p * s + 1.0 / 7;
  p = p * s + 1.0 / 5;
  p = p * s + 1.0 / 3;
  return static_cast<double>(e) * 0.69314718055994530942 + 2 * (z + z * s * p);
}

// Arguments beyond the range of float results are cut.
SS_INLINE double expOfDouble(double value) {
  double x = value < -200 ? -200 : value;
  x = x > 200 ? 200 : x;
  constexpr double kRound = 6755399441055744.0;
  const double shifted = x * 1.44269504088896340736 + kRound;
  const double n = shifted - kRound, r = x - n * 0.69314718055994530942;
  double p = 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1;
  p = p * r + 1;
  const std::int64_t k = std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(kRound);
  return p * std::bit_cast<double>((k + 1023) << 52);
}

// Whether all bases were positive and finite and all exponents finite.
SS_CLONES bool powBlock(const float* a, const float* b, float* y, std::int64_t count) {
  int good = 1;
#pragma omp simd reduction(& : good)
  for (std::int64_t i = 0; i < count; ++i) {
    good &= static_cast<int>(a[i] > 0) & static_cast<int>(a[i] <= std::numeric_limits<float>::max()) &
            static_cast<int>(std::fabs(b[i]) <= std::numeric_limits<float>::max());
    y[i] = static_cast<float>(expOfDouble(static_cast<double>(b[i]) * logOfPositive(static_cast<double>(a[i]))));
  }
  return good != 0;
}

template <typename F>
SS_CLONES void simpleLoop(const float* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = F::of(x[i]);
}
#define SS_POWER(NAME, EXPRESSION)                            \
  struct NAME {                                               \
    SS_INLINE static float of(float x) { return EXPRESSION; } \
  };
SS_POWER(PowerZero, (static_cast<void>(x), 1.0F))
SS_POWER(PowerOne, x)
SS_POWER(PowerTwo, x* x)
SS_POWER(PowerThree, x* x* x)
SS_POWER(PowerFour, (x * x) * (x * x))
SS_POWER(PowerHalf, x < 0 && x >= -std::numeric_limits<float>::max() ? std::numeric_limits<float>::quiet_NaN() : std::sqrt(std::fabs(x)))
SS_POWER(PowerMinusHalf, x < 0 && x >= -std::numeric_limits<float>::max() ? std::numeric_limits<float>::quiet_NaN() : 1.0F / std::sqrt(std::fabs(x)))
SS_POWER(PowerMinusOne, 1.0F / x)
#undef SS_POWER

using SimpleLoop = void (*)(const float*, float*, std::int64_t);
SimpleLoop simpleOf(float exponent) {
  if (exponent == 0.0F) return simpleLoop<PowerZero>;
  if (exponent == 1.0F) return simpleLoop<PowerOne>;
  if (exponent == 2.0F) return simpleLoop<PowerTwo>;
  if (exponent == 3.0F) return simpleLoop<PowerThree>;
  if (exponent == 4.0F) return simpleLoop<PowerFour>;
  if (exponent == 0.5F) return simpleLoop<PowerHalf>;
  if (exponent == -0.5F) return simpleLoop<PowerMinusHalf>;
  if (exponent == -1.0F) return simpleLoop<PowerMinusOne>;
  return nullptr;
}

void powRun(const float* a, std::int64_t stepA, const float* b, std::int64_t stepB, float* y, std::int64_t count) {
  constexpr std::int64_t kBlock = 256;
  std::array<float, kBlock> base{}, exponent{}, result{};  // y may lie over an operand that is needed again
  if (stepA == 0) base.fill(*a);
  if (stepB == 0) exponent.fill(*b);
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t n = std::min(kBlock, count - at);
    const float *x = stepA == 0 ? base.data() : a + at, *e = stepB == 0 ? exponent.data() : b + at;
    if (!powBlock(x, e, result.data(), n))
      for (std::int64_t i = 0; i < n; ++i)
        result[static_cast<std::size_t>(i)] = static_cast<float>(std::pow(static_cast<double>(x[i]), static_cast<double>(e[i])));
    std::copy_n(result.begin(), n, y + at);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makePow(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0)) return notTaken(spec, "operands other than float32");
  SS_ASSIGN(const Broadcast broadcast, Broadcast::of(spec, spec.outputs[0].dims, {&spec.inputs[0].dims, &spec.inputs[1].dims}));
  const bool full = elementCount(spec.inputs[0].dims) == broadcast.elements(), oneExponent = elementCount(spec.inputs[1].dims) == 1;
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float *a = input(call, 0), *b = input(call, 1);
    float* y = output(call, 0);
    const SimpleLoop simple = full && oneExponent ? simpleOf(*b) : nullptr;
    // One exponent is read before its memory may be overwritten.
    const float exponent = *b;
    parallelElements(broadcast.elements(), threads, [&](std::int64_t begin, std::int64_t end) {
      if (simple != nullptr) return simple(a + begin, y + begin, end - begin);
      broadcast.runs(begin, end, [&](const Broadcast::Run& run) {
        powRun(a + run.at[0], broadcast.step(0), oneExponent ? &exponent : b + run.at[1], broadcast.step(1), y + run.out, run.count);
      });
    });
    return {};
  });
}

}  // namespace stepscope::cpu
