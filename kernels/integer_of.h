// A float as an integer, as ONNX's Cast does it: towards zero; NaN is 0; beyond the range of int64 it saturates there (a
// positive one goes on to uint64), and narrower types keep the low bits. C++ leaves all but the first undefined.
#pragma once

#include <cstdint>

namespace stepscope {

template <typename To>
To integerOf(double value) {
  if (value != value) return To{0};
  if (value >= 0x1p63) return static_cast<To>(value >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(value));
  return static_cast<To>(value <= -0x1p63 ? INT64_MIN : static_cast<std::int64_t>(value));
}

}  // namespace stepscope
