// Arithmetic of two broadcast operands.
#include <cmath>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"

namespace stepscope::reference {
namespace {

// One numeric type; F may be a template over Wide<T>.
template <typename F>
Status binary(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkVariadic(spec, call));
  if (call.inputs.size() < 2) return invalid(spec.op + ": one input; two");
  const F f(spec.attrs);
  const bool done = dispatchNumeric(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    broadcastLoop<T, T>(call.inputs[0], call.inputs[1], call.outputs[0], f);
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

template <typename F>
Status bitwise(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkVariadic(spec, call));
  if (call.inputs.size() < 2) return invalid(spec.op + ": one input; two");
  const F f(spec.attrs);
  const bool done = dispatchInteger(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    broadcastLoop<T, T>(call.inputs[0], call.inputs[1], call.outputs[0], f);
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

struct Plain {
  explicit Plain(const Attributes&) {}
};

struct Add : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    return static_cast<T>(bitsOf(a) + bitsOf(b));
  }
};
struct Sub : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a - b;
    return static_cast<T>(bitsOf(a) - bitsOf(b));
  }
};
struct Mul : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) return a * b;
    return static_cast<T>(bitsOf(a) * bitsOf(b));
  }
};

// A quotient of integers without traps: x / 0 = 0, and the one that overflows wraps.
template <typename T>
T divideIntegers(T a, T b) {
  if (b == T{0}) return T{0};
  if constexpr (std::is_signed_v<T>)
    if (b == T{-1}) return static_cast<T>(0 - bitsOf(a));
  return static_cast<T>(a / b);
}

struct Div : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return a / b;
    else
      return divideIntegers(a, b);
  }
};

struct Mod {
  bool truncate;
  explicit Mod(const Attributes& attrs) : truncate(attrs.integer("fmod", 0) != 0) {}
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const double rest = std::fmod(a, b);
      return !truncate && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    } else {
      const T rest = static_cast<T>(bitsOf(a) - bitsOf(divideIntegers(a, b)) * bitsOf(b));
      return !truncate && b != T{0} && rest != T{0} && (rest < T{0}) != (b < T{0}) ? static_cast<T>(rest + b) : rest;
    }
  }
};

struct PRelu : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T x, T slope) const {
    if constexpr (std::is_floating_point_v<T>) return x < 0 ? x * slope : x;
    return x < T{0} ? static_cast<T>(bitsOf(x) * bitsOf(slope)) : x;
  }
};

struct BitAnd : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor : Plain {
  using Plain::Plain;
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Shift {
  bool left;
  explicit Shift(const Attributes& attrs) : left(attrs.text("direction", "") == "LEFT") {}
  template <typename T>
  T operator()(T a, T b) const {
    const std::uint64_t by = bitsOf(b);  // a negative count is a large one
    const bool beyond = by >= sizeof(T) * 8;
    if (left) return beyond ? T{0} : static_cast<T>(bitsOf(a) << by);
    if (beyond) return static_cast<T>(a < T{0} ? -1 : 0);  // signed numbers shift their sign in
    return static_cast<T>(a >> by);
  }
};

Status bitwiseNot(const KernelSpec& spec, const KernelCall& call) {
  SS_TRY(checkVariadic(spec, call));
  const bool done = dispatchInteger(call.inputs[0].dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto in = call.inputs[0].as<const T>();
    const auto out = call.outputs[0].as<T>();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = static_cast<T>(~in[i]);
  });
  if (!done) return wrongType(spec, call.inputs[0].dtype);
  return {};
}

// a ^ b by repeated squaring, wrapping; 1 / a^|b| truncated for a negative exponent.
template <typename T>
T integerPower(T a, std::int64_t b) {
  if (b < 0) {
    if (a == T{1}) return T{1};
    if constexpr (std::is_signed_v<T>)
      if (a == T{-1}) return b % 2 == 0 ? T{1} : T{-1};
    return T{0};
  }
  std::uint64_t power = 1, base = bitsOf(a);
  for (; b > 0; b >>= 1, base *= base)
    if (b & 1) power *= base;
  return static_cast<T>(power);
}

// The double of a power as an element of type T, saturating where it does not fit.
template <typename T>
T fromPower(double value) {
  if constexpr (kIsFloat<T>) {
    return narrow<T>(value);
  } else {
    if (!(value > -0x1p63)) return static_cast<T>(std::isnan(value) ? 0 : INT64_MIN);
    if (value >= 0x1p63) return static_cast<T>(value >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(value));
    return static_cast<T>(static_cast<std::int64_t>(value));
  }
}

// The two operands may have different types; the result has the first one.
Status pow(const KernelSpec& spec, const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1];
  const TensorView& y = call.outputs[0];
  SS_TRY(checkBroadcasts(spec, call, 0));
  SS_TRY(checkBroadcasts(spec, call, 1));
  SS_TRY(checkOutputType(spec, call, 0, a.dtype));
  const BroadcastIndex left(y.dims, a.dims), right(y.dims, b.dims);
  bool exponentFits = false;
  const bool done = dispatchNumeric(a.dtype, [&](auto baseTag) {
    using T = decltype(baseTag);
    exponentFits = dispatchNumeric(b.dtype, [&](auto exponentTag) {
      using E = decltype(exponentTag);
      const T* x = static_cast<const T*>(a.data);
      const E* e = static_cast<const E*>(b.data);
      const auto out = y.as<T>();
      for (std::size_t i = 0; i < out.size(); ++i) {
        const T base = x[left(static_cast<std::int64_t>(i))];
        const E exponent = e[right(static_cast<std::int64_t>(i))];
        if constexpr (!kIsFloat<T> && !kIsFloat<E>)
          out[i] = integerPower(base, static_cast<std::int64_t>(exponent));
        else
          out[i] = fromPower<T>(std::pow(static_cast<double>(widen(base)), static_cast<double>(widen(exponent))));
      }
    });
  });
  if (!done) return wrongType(spec, a.dtype);
  if (!exponentFits) return wrongType(spec, b.dtype);
  return {};
}

}  // namespace

std::span<const KernelEntry> binaryKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"", "Add", reading<2, binary<Add>>},
      {"", "BitShift", reading<2, bitwise<Shift>>},
      {"", "BitwiseAnd", reading<2, bitwise<BitAnd>>},
      {"", "BitwiseNot", reading<1, bitwiseNot>},
      {"", "BitwiseOr", reading<2, bitwise<BitOr>>},
      {"", "BitwiseXor", reading<2, bitwise<BitXor>>},
      {"", "Div", reading<2, binary<Div>>},
      {"", "Mod", reading<2, binary<Mod>>},
      {"", "Mul", reading<2, binary<Mul>>},
      {"", "PRelu", reading<2, binary<PRelu>>},
      {"", "Pow", reading<2, pow>},
      {"", "Sub", reading<2, binary<Sub>>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
