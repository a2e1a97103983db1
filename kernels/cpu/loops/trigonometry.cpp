// Trigonometric and hyperbolic functions and their inverses, computed in double. Angles so large that pi/2 in two parts does
// not reach go to the standard library, one by one.
#include <array>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/wide_math.h"

namespace stepscope::cpu {
namespace {

using Loop = void (*)(const float* x, float* y, std::int64_t count);

template <typename F>
SS_CLONES void loopOf(const float* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(F::of(static_cast<double>(x[i])));
}

// Also false for NaN and infinities, which the standard library gets too.
SS_CLONES bool allWithinReach(const float* x, std::int64_t count) {
  int good = 1;
#pragma omp simd reduction(& : good)
  for (std::int64_t i = 0; i < count; ++i) good &= static_cast<int>(std::fabs(x[i]) <= kLargestAngle);
  return good != 0;
}

template <typename F>
void angleLoop(const float* x, float* y, std::int64_t count) {
  constexpr std::int64_t kBlock = 256;
  std::array<float, kBlock> result;  // y may be x
  for (std::int64_t at = 0; at < count; at += kBlock) {
    const std::int64_t n = std::min(kBlock, count - at);
    if (allWithinReach(x + at, n)) {
      loopOf<F>(x + at, y + at, n);
      continue;
    }
    loopOf<F>(x + at, result.data(), n);
    for (std::int64_t i = 0; i < n; ++i)
      if (!(std::fabs(x[at + i]) <= kLargestAngle))
        result[static_cast<std::size_t>(i)] = static_cast<float>(F::far(static_cast<double>(x[at + i])));
    std::copy_n(result.begin(), n, y + at);
  }
}

#define SS_ANGLE(NAME, EXPRESSION, FAR)                         \
  struct NAME {                                                 \
    SS_INLINE static double of(double x) { return EXPRESSION; } \
    static double far(double x) { return FAR(x); }              \
  };
SS_ANGLE(Sine, sineAndCosine(x).sine, std::sin)
SS_ANGLE(Cosine, sineAndCosine(x).cosine, std::cos)
SS_ANGLE(Tangent, sineAndCosine(x).sine / sineAndCosine(x).cosine, std::tan)
#undef SS_ANGLE

#define SS_WIDE(NAME, FUNCTION)                                  \
  struct NAME {                                                  \
    SS_INLINE static double of(double x) { return FUNCTION(x); } \
  };
SS_WIDE(ArcCosine, acosOf)
SS_WIDE(ArcSine, asinOf)
SS_WIDE(ArcTangent, atanOf)
SS_WIDE(HyperbolicCosine, coshOf)
SS_WIDE(HyperbolicSine, sinhOf)
SS_WIDE(AreaCosine, acoshOf)
SS_WIDE(AreaSine, asinhOf)
SS_WIDE(AreaTangent, atanhOf)
#undef SS_WIDE

Loop loopNamed(std::string_view op) {
  if (op == "Acos") return loopOf<ArcCosine>;
  if (op == "Acosh") return loopOf<AreaCosine>;
  if (op == "Asin") return loopOf<ArcSine>;
  if (op == "Asinh") return loopOf<AreaSine>;
  if (op == "Atan") return loopOf<ArcTangent>;
  if (op == "Atanh") return loopOf<AreaTangent>;
  if (op == "Cos") return angleLoop<Cosine>;
  if (op == "Cosh") return loopOf<HyperbolicCosine>;
  if (op == "Sin") return angleLoop<Sine>;
  if (op == "Sinh") return loopOf<HyperbolicSine>;
  if (op == "Tan") return angleLoop<Tangent>;
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeTrigonometry(const KernelSpec& spec) {
  const Loop loop = loopNamed(spec.op);
  if (loop == nullptr) return notTaken(spec, "no vector form");
  if (!takesInput(spec, 0) || !takesOutput(spec, 0)) return notTaken(spec, "elements other than float32");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count) return notTaken(spec, "a result of another size");
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) -> Status {
    const float* x = input(call, 0);
    float* y = output(call, 0);
    parallelElements(count, threads, [&](std::int64_t begin, std::int64_t end) { loop(x + begin, y + begin, end - begin); });
    return {};
  });
}

}  // namespace stepscope::cpu
