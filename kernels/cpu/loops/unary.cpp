// Functions of one number, and what tests one.
#include <limits>

#include "kernels/cpu/loops/support.h"
#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {
namespace {

template <typename F, typename X, typename Y>
SS_CLONES void unaryLoop(F f, const X* x, Y* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = f.of(x[i]);
}

template <typename X = float, typename Y = float, typename F>
Result<std::unique_ptr<Kernel>> make(const KernelSpec& spec, F f, DType in = DType::kF32, DType out = DType::kF32) {
  if (!takesInput(spec, 0, in) || !takesOutput(spec, 0, out)) return notTaken(spec, "elements of another type");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count) return notTaken(spec, "a result of another size");
  if (spec.inputs[0].layout != spec.outputs[0].layout) return notTaken(spec, "a result in another layout");
  return makeBodyKernel("vector loop", [=, threads = spec.threads](const KernelCall& call) {
    const X* x = input<X>(call, 0);
    Y* y = output<Y>(call, 0);
    parallelElements(count, threads,
                     [&](std::int64_t begin, std::int64_t end) { unaryLoop(f, x + begin, y + begin, end - begin); });
  });
}

#define SS_UNARY(NAME, EXPRESSION)                           \
  struct NAME {                                              \
    SS_INLINE float of(float x) const { return EXPRESSION; } \
  };
SS_UNARY(Absolute, std::fabs(x))
SS_UNARY(Ceiling, std::ceil(x))
SS_UNARY(ErrorFunction, erfOf(x))
SS_UNARY(Exponential, expOf(x))
SS_UNARY(Floor, std::floor(x))
SS_UNARY(GeluOfErf, geluErfOf(x))
SS_UNARY(GeluOfTanh, geluTanhOf(x))
SS_UNARY(HardSwish, x*(x / 6 + 0.5F < 0 ? 0.0F : x / 6 + 0.5F > 1 ? 1.0F : x / 6 + 0.5F))
SS_UNARY(HyperbolicTangent, tanhOf(x))
SS_UNARY(Inverse, 1.0F / x)
SS_UNARY(Logistic, sigmoidOf(x))
SS_UNARY(MishOf, x* tanhOf(softplusOf(x)))
SS_UNARY(NaturalLogarithm, logOf(x))
SS_UNARY(Negate, -x)
SS_UNARY(Rectify, x < 0 ? 0.0F : x)
SS_UNARY(RoundToEven, std::rint(x))
SS_UNARY(SignOf, x > 0 ? 1.0F : x < 0 ? -1.0F : x)
SS_UNARY(SoftSign, x / (1.0F + std::fabs(x)))
SS_UNARY(SoftPlus, softplusOf(x))
SS_UNARY(SquareRoot, std::sqrt(x))
#undef SS_UNARY

// Elu with `inside` 1, Celu with alpha * (e^(x / alpha) - 1), Selu with `outside`.
struct ExponentialUnit {
  float alpha, inside, outside;
  SS_INLINE float of(float x) const { return outside * (x > 0 ? x : alpha * expm1Of(x * inside)); }
};
struct LeakyRelu {
  float alpha;
  SS_INLINE float of(float x) const { return x < 0 ? alpha * x : x; }
};
struct ThresholdedRelu {
  float alpha;
  SS_INLINE float of(float x) const { return x <= alpha ? 0.0F : x; }
};
struct HardSigmoid {
  float alpha, beta;
  SS_INLINE float of(float x) const {
    const float line = alpha * x + beta;
    return line < 0 ? 0.0F : line > 1 ? 1.0F : line;
  }
};
struct QuickGelu {
  float alpha;
  SS_INLINE float of(float x) const { return x * sigmoidOf(alpha * x); }
};
struct Shrink {
  float bias, lambd;
  SS_INLINE float of(float x) const { return x < -lambd ? x + bias : x > lambd ? x - bias : 0.0F; }
};
struct NotANumber {
  SS_INLINE std::uint8_t of(float x) const { return x != x ? 1 : 0; }
};
struct IsInfinite {
  float low, high;  // the infinities that count, NaN for one that does not
  SS_INLINE std::uint8_t of(float x) const { return static_cast<std::uint8_t>((x == low ? 1 : 0) | (x == high ? 1 : 0)); }
};
// Bytes of bool are 0 or 1.
struct Opposite {
  SS_INLINE std::uint8_t of(std::uint8_t x) const { return x ^ 1; }
};
template <typename T>
struct Bounds {
  T low, high;
  SS_INLINE T of(T x) const {
    const T y = x < low ? low : x;
    return y > high ? high : y;
  }
};

// Both bounds are optional.
template <typename T>
std::unique_ptr<Kernel> makeClipOf(std::int64_t count, int threads) {
  return makeBodyKernel("vector loop", [=](const KernelCall& call) {
    using Limits = std::numeric_limits<T>;
    Bounds<T> bounds{Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
                     Limits::has_infinity ? Limits::infinity() : Limits::max()};
    if (call.inputPresent(1)) bounds.low = *input<T>(call, 1);
    if (call.inputPresent(2)) bounds.high = *input<T>(call, 2);
    const T* x = input<T>(call, 0);
    T* y = output<T>(call, 0);
    parallelElements(count, threads,
                     [&](std::int64_t begin, std::int64_t end) { unaryLoop(bounds, x + begin, y + begin, end - begin); });
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeUnary(const KernelSpec& spec) {
  const std::string& op = spec.op;
  if (op == "Abs") return make(spec, Absolute{});
  if (op == "Ceil") return make(spec, Ceiling{});
  if (op == "Celu")
    return make(spec, ExponentialUnit{spec.attrs.real("alpha", 1.0F), 1.0F / spec.attrs.real("alpha", 1.0F), 1.0F});
  if (op == "Elu") return make(spec, ExponentialUnit{spec.attrs.real("alpha", 1.0F), 1.0F, 1.0F});
  if (op == "Erf") return make(spec, ErrorFunction{});
  if (op == "Exp") return make(spec, Exponential{});
  if (op == "Floor") return make(spec, Floor{});
  if (op == "HardSigmoid") return make(spec, HardSigmoid{spec.attrs.real("alpha", 0.2F), spec.attrs.real("beta", 0.5F)});
  if (op == "HardSwish") return make(spec, HardSwish{});
  if (op == "LeakyRelu") return make(spec, LeakyRelu{spec.attrs.real("alpha", 0.01F)});
  if (op == "Log") return make(spec, NaturalLogarithm{});
  if (op == "Mish") return make(spec, MishOf{});
  if (op == "Neg") return make(spec, Negate{});
  if (op == "QuickGelu") return make(spec, QuickGelu{spec.attrs.real("alpha", 1.702F)});
  if (op == "Reciprocal") return make(spec, Inverse{});
  if (op == "Relu") return make(spec, Rectify{});
  if (op == "Round") return make(spec, RoundToEven{});
  if (op == "Selu")
    return make(spec, ExponentialUnit{spec.attrs.real("alpha", 1.67326319217681884765625F), 1.0F,
                                      spec.attrs.real("gamma", 1.05070102214813232421875F)});
  if (op == "Shrink") return make(spec, Shrink{spec.attrs.real("bias", 0.0F), spec.attrs.real("lambd", 0.5F)});
  if (op == "Sigmoid") return make(spec, Logistic{});
  if (op == "Sign") return make(spec, SignOf{});
  if (op == "Softplus") return make(spec, SoftPlus{});
  if (op == "Softsign") return make(spec, SoftSign{});
  if (op == "Sqrt") return make(spec, SquareRoot{});
  if (op == "Tanh") return make(spec, HyperbolicTangent{});
  if (op == "ThresholdedRelu") return make(spec, ThresholdedRelu{spec.attrs.real("alpha", 1.0F)});
  return notTaken(spec, "no vector form");
}

Result<std::unique_ptr<Kernel>> makeTest(const KernelSpec& spec) {
  if (spec.op == "Not") return make<std::uint8_t, std::uint8_t>(spec, Opposite{}, DType::kBool, DType::kBool);
  if (spec.op == "IsNaN") return make<float, std::uint8_t>(spec, NotANumber{}, DType::kF32, DType::kBool);
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNone = std::numeric_limits<float>::quiet_NaN();
  const bool negative = spec.attrs.integer("detect_negative", 1) != 0,
             positive = spec.attrs.integer("detect_positive", 1) != 0;
  return make<float, std::uint8_t>(spec, IsInfinite{negative ? -kInfinity : kNone, positive ? kInfinity : kNone},
                                   DType::kF32, DType::kBool);
}

Result<std::unique_ptr<Kernel>> makeGelu(const KernelSpec& spec) {
  if (spec.inputPresent(1)) return makeBinary(spec);
  const bool tanhForm = spec.op == "FastGelu" || (spec.domain.empty() && spec.attrs.text("approximate", "none") == "tanh");
  return tanhForm ? make(spec, GeluOfTanh{}) : make(spec, GeluOfErf{});
}

Result<std::unique_ptr<Kernel>> makeClip(const KernelSpec& spec) {
  const DType dtype = spec.inputPresent(0) ? spec.inputs[0].dtype : DType::kUndefined;
  if (!takesInput(spec, 0, dtype) || !takesOutput(spec, 0, dtype) || !takesOptional(spec, 1, 1, dtype) ||
      !takesOptional(spec, 2, 1, dtype))
    return notTaken(spec, "operands of several types, or bounds that are no scalars");
  const std::int64_t count = elementCount(spec.inputs[0].dims);
  if (elementCount(spec.outputs[0].dims) != count) return notTaken(spec, "a result of another size");
  if (dtype == DType::kF32) return makeClipOf<float>(count, spec.threads);
  if (dtype == DType::kI8) return makeClipOf<std::int8_t>(count, spec.threads);
  if (dtype == DType::kU8) return makeClipOf<std::uint8_t>(count, spec.threads);
  return notTaken(spec, "elements other than float32 and codes of 8 bits");
}

}  // namespace stepscope::cpu
