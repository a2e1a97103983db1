// Elements of every number type as double, int64 or uint64, and back.
//
// A kernel that computes with these is compiled at most three times instead of once per type, with the same bits: floats of
// every width are computed in double and integers modulo 2^64, and a result is rounded or cut once, when it is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "kernels/dtype.h"
#include "kernels/half.h"

namespace stepscope::reference {

// What the elements of a type are computed in: double, int64, uint64.
enum class Number { kReal, kSigned, kUnsigned };

// bool counts as unsigned, 0 or 1. Nothing for strings.
std::optional<Number> numberOf(DType dtype);

// Whether elements of type T are floats, of whatever width.
template <typename T>
inline constexpr bool kIsFloat =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// How the elements of one type become W and W becomes elements.
template <typename W>
struct Numbers {
  // Elements `at`, `at` + stride … of `from`.
  void (*load)(const void* from, std::int64_t at, std::int64_t stride, std::int64_t count, W* to) = nullptr;
  // Elements `at`, `at` + 1 … of `to`. A double saturates in an integer type, NaN is 0 there; other numbers are cut.
  void (*store)(const W* from, std::int64_t count, void* to, std::int64_t at) = nullptr;
  W lowest = 0, highest = 0;  // of the type; infinities for floats
};

// W is what numberOf() says, or double for any number type.
template <typename W>
Numbers<W> numbersOf(DType dtype);

}  // namespace stepscope::reference
