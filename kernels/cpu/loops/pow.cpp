// Pow: exponents 2, 3, 1, 0.5, -0.5, -1, 0 that are one element directly; others as e^(b log a) in double, and by std::pow
// where that has no meaning (bases that are not positive and finite).
#include "kernels/cpu/loops/pow.h"

#include <array>
#include <cmath>

#include "kernels/cpu/loops/broadcast.h"
#include "kernels/cpu/loops/wide_math.h"

namespace stepscope::cpu {
namespace {

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
SS_POWER(PowerHalf, x < 0 && x >= -std::numeric_limits<float>::max() ? std::numeric_limits<float>::quiet_NaN()
                                                                     : std::sqrt(std::fabs(x)))
SS_POWER(PowerMinusHalf, x < 0 && x >= -std::numeric_limits<float>::max() ? std::numeric_limits<float>::quiet_NaN()
                                                                          : 1.0F / std::sqrt(std::fabs(x)))
SS_POWER(PowerMinusOne, 1.0F / x)
#undef SS_POWER

}  // namespace

SimplePower simplePowerOf(float exponent) {
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
        result[static_cast<std::size_t>(i)] =
            static_cast<float>(std::pow(static_cast<double>(x[i]), static_cast<double>(e[i])));
    std::copy_n(result.begin(), n, y + at);
  }
}

Result<std::unique_ptr<Kernel>> makePow(const KernelSpec& spec) {
  if (!takesInput(spec, 0) || !takesInput(spec, 1) || !takesOutput(spec, 0))
    return notTaken(spec, "operands other than float32");
  SS_ASSIGN(const Broadcast broadcast,
            Broadcast::of(spec, spec.outputs[0].dims, {&spec.inputs[0].dims, &spec.inputs[1].dims}));
  const bool full = elementCount(spec.inputs[0].dims) == broadcast.elements(),
             oneExponent = elementCount(spec.inputs[1].dims) == 1;
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float *a = input(call, 0), *b = input(call, 1);
    float* y = output(call, 0);
    const SimplePower simple = full && oneExponent ? simplePowerOf(*b) : nullptr;
    // One exponent is read before its memory may be overwritten.
    const float exponent = *b;
    parallelElements(broadcast.elements(), threads, [&](std::int64_t begin, std::int64_t end) {
      if (simple != nullptr) return simple(a + begin, y + begin, end - begin);
      broadcast.runs(begin, end, [&](const Broadcast::Run& run) {
        powRun(a + run.at[0], broadcast.step(0), oneExponent ? &exponent : b + run.at[1], broadcast.step(1), y + run.out,
               run.count);
      });
    });
    return {};
  });
}

}  // namespace stepscope::cpu
