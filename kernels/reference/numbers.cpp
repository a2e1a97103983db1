#include "kernels/reference/numbers.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/dispatch.h"

namespace stepscope::reference {
namespace {

template <typename W, typename T>
T cut(W v) {
  if constexpr (kIsFloat<T> || std::is_integral_v<W>) {
    return static_cast<T>(v);
  } else {
    if (std::isnan(v)) return T{0};
    if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(v);
  }
}

template <typename W, typename T>
Numbers<W> numbers() {
  Numbers<W> made;
  made.load = [](const void* from, std::int64_t at, std::int64_t stride, std::int64_t count, W* to) {
    const T* elements = static_cast<const T*>(from) + at;
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<W>(elements[i * stride]);
  };
  made.store = [](const W* from, std::int64_t count, void* to, std::int64_t at) {
    T* elements = static_cast<T*>(to) + at;
    for (std::int64_t i = 0; i < count; ++i) elements[i] = cut<W, T>(from[i]);
  };
  if constexpr (kIsFloat<T>) {
    made.lowest = -std::numeric_limits<double>::infinity();
    made.highest = std::numeric_limits<double>::infinity();
  } else {
    made.lowest = static_cast<W>(std::numeric_limits<T>::lowest());
    made.highest = static_cast<W>(std::numeric_limits<T>::max());
  }
  return made;
}

}  // namespace

std::optional<Number> numberOf(DType dtype) {
  if (dtype == DType::kBool || isUnsigned(dtype)) return Number::kUnsigned;
  if (isInteger(dtype)) return Number::kSigned;
  if (isFloating(dtype)) return Number::kReal;
  return std::nullopt;
}

template <>
Numbers<double> numbersOf<double>(DType dtype) {
  Numbers<double> made;
  dispatchFixed(dtype, [&](auto tag) { made = numbers<double, decltype(tag)>(); });
  return made;
}

template <>
Numbers<std::int64_t> numbersOf<std::int64_t>(DType dtype) {
  switch (dtype) {
    case DType::kI8: return numbers<std::int64_t, std::int8_t>();
    case DType::kI16: return numbers<std::int64_t, std::int16_t>();
    case DType::kI32: return numbers<std::int64_t, std::int32_t>();
    default: return numbers<std::int64_t, std::int64_t>();
  }
}

template <>
Numbers<std::uint64_t> numbersOf<std::uint64_t>(DType dtype) {
  switch (dtype) {
    case DType::kBool: return numbers<std::uint64_t, bool>();
    case DType::kU8: return numbers<std::uint64_t, std::uint8_t>();
    case DType::kU16: return numbers<std::uint64_t, std::uint16_t>();
    case DType::kU32: return numbers<std::uint64_t, std::uint32_t>();
    default: return numbers<std::uint64_t, std::uint64_t>();
  }
}

}  // namespace stepscope::reference
