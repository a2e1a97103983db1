// Arithmetic on numbers from a file, which may be anything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace stepscope::storage {

// Nanoseconds or bytes as read: far beyond anything real, yet sums and differences of a few cannot overflow.
inline constexpr std::int64_t kLargest = std::int64_t{1} << 60;
inline std::int64_t bounded(std::int64_t value) { return std::clamp(value, -kLargest, kLargest); }
inline std::int64_t boundedSize(std::int64_t value) { return std::clamp<std::int64_t>(value, 0, kLargest); }

// Stays at the largest value instead of overflowing.
inline std::int64_t saturatingAdd(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

}  // namespace stepscope::storage
