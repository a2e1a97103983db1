// Arithmetic, comparisons and logic of two broadcast operands, and the Gelu forms that add a bias.
#include <limits>

#include "kernels/cpu/loops/broadcast.h"
#include "kernels/cpu/loops/lanes_last.h"
#include "kernels/cpu/loops/loops.h"
#include "kernels/cpu/loops/vector_math.h"
#include "kernels/pointwise_program.h"

namespace stepscope::cpu {
namespace {

template <typename F, typename T, typename Y>
SS_CLONES void pairLoop(const void* left, std::int64_t stepA, const void* right, std::int64_t stepB, void* result,
                        std::int64_t count) {
  const T *a = static_cast<const T*>(left), *b = static_cast<const T*>(right);
  Y* y = static_cast<Y*>(result);
  if (stepA == 1 && stepB == 1) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = F::of(a[i], b[i]);
  } else if (stepA == 1) {
    const T one = *b;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = F::of(a[i], one);
  } else if (stepB == 1) {
    const T one = *a;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = F::of(one, b[i]);
  } else {
    const Y one = F::of(*a, *b);
    for (std::int64_t i = 0; i < count; ++i) y[i] = one;
  }
}

// Integers wrap.
struct Plus {
  SS_INLINE static float of(float a, float b) { return a + b; }
  SS_INLINE static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a + b; }
};
struct Minus {
  SS_INLINE static float of(float a, float b) { return a - b; }
  SS_INLINE static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a - b; }
};
struct Times {
  SS_INLINE static float of(float a, float b) { return a * b; }
  SS_INLINE static std::uint64_t of(std::uint64_t a, std::uint64_t b) { return a * b; }
};
struct Over {
  SS_INLINE static float of(float a, float b) { return a / b; }
};
struct ParametricRelu {
  SS_INLINE static float of(float x, float slope) { return x < 0 ? x * slope : x; }
};
// NaN wins, whichever side it is on.
struct Largest {
  SS_INLINE static float of(float a, float b) { return a != a || a > b ? a : b; }
};
struct Smallest {
  SS_INLINE static float of(float a, float b) { return a != a || a < b ? a : b; }
};
struct BiasedGelu {
  SS_INLINE static float of(float x, float bias) { return geluErfOf(x + bias); }
};
struct BiasedFastGelu {
  SS_INLINE static float of(float x, float bias) { return geluTanhOf(x + bias); }
};

#define SS_COMPARISON(NAME, OPERATOR)                         \
  struct NAME {                                               \
    template <typename T>                                     \
    SS_INLINE static std::uint8_t of(T a, T b) {              \
      return static_cast<std::uint8_t>(a OPERATOR b ? 1 : 0); \
    }                                                         \
  };
SS_COMPARISON(Equal, ==)
SS_COMPARISON(Less, <)
SS_COMPARISON(LessOrEqual, <=)
SS_COMPARISON(Greater, >)
SS_COMPARISON(GreaterOrEqual, >=)
#undef SS_COMPARISON

// Bytes of bool are 0 or 1.
struct Both {
  SS_INLINE static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a & b; }
};
struct Either {
  SS_INLINE static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a | b; }
};
struct Differ {
  SS_INLINE static std::uint8_t of(std::uint8_t a, std::uint8_t b) { return a ^ b; }
};

struct Entry {
  std::string_view op;
  DType in, out;
  PairLoop loop;
};

template <typename F>
constexpr Entry ofFloats(std::string_view op) {
  return {op, DType::kF32, DType::kF32, pairLoop<F, float, float>};
}
template <typename F>
constexpr Entry ofInts(std::string_view op) {
  return {op, DType::kI64, DType::kI64, pairLoop<F, std::uint64_t, std::uint64_t>};
}
template <typename F, typename T>
constexpr Entry comparing(std::string_view op, DType dtype) {
  return {op, dtype, DType::kBool, pairLoop<F, T, std::uint8_t>};
}

#define SS_COMPARING(NAME)                                                                       \
  comparing<NAME, float>(#NAME, DType::kF32), comparing<NAME, std::int32_t>(#NAME, DType::kI32), \
      comparing<NAME, std::int64_t>(#NAME, DType::kI64)

const Entry kEntries[] = {
    ofFloats<Plus>("Add"),
    ofInts<Plus>("Add"),
    ofFloats<Minus>("Sub"),
    ofInts<Minus>("Sub"),
    ofFloats<Times>("Mul"),
    ofInts<Times>("Mul"),
    ofFloats<Over>("Div"),
    ofFloats<ParametricRelu>("PRelu"),
    ofFloats<Largest>("Max"),
    ofFloats<Smallest>("Min"),
    ofFloats<Plus>("Sum"),
    ofFloats<BiasedGelu>("BiasGelu"),
    ofFloats<BiasedGelu>("Gelu"),
    ofFloats<BiasedFastGelu>("FastGelu"),
    SS_COMPARING(Equal),
    SS_COMPARING(Less),
    SS_COMPARING(LessOrEqual),
    SS_COMPARING(Greater),
    SS_COMPARING(GreaterOrEqual),
    {"And", DType::kBool, DType::kBool, pairLoop<Both, std::uint8_t, std::uint8_t>},
    {"Or", DType::kBool, DType::kBool, pairLoop<Either, std::uint8_t, std::uint8_t>},
    {"Xor", DType::kBool, DType::kBool, pairLoop<Differ, std::uint8_t, std::uint8_t>},
};
#undef SS_COMPARING

}  // namespace

Result<std::unique_ptr<Kernel>> makeBinary(const KernelSpec& spec) {
  if (anyBlocked(spec)) {
    // One element per channel beside a whole operand: a chain of one step.
    const auto op = spec.domain.empty() ? pointwiseOp(spec.op == "Sum" ? "Add" : spec.op) : std::nullopt;
    if (!op || spec.inputs.size() != 2 || infoOf(*op).arity != 2 || infoOf(*op).mask)
      return notTaken(spec, "operands in several layouts");
    KernelSpec chain = spec;
    chain.attrs = {{"steps", PointwiseProgram{2, {{*op, {0, 1}}}}.text()}};
    return makePointwise(chain);
  }
  if (spec.inputs.size() == 2)
    for (const Entry& entry : kEntries)
      if (entry.op == spec.op && takesInput(spec, 0, entry.in) && takesInput(spec, 1, entry.in) &&
          takesOutput(spec, 0, entry.out))
        return makePairKernel(spec, entry.loop);
  return notTaken(spec, "operands other than two of one common type");
}

}  // namespace stepscope::cpu
