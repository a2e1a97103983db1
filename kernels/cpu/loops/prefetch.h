// Rows that are picked from all over a table: no processor guesses where the next one lies.
#pragma once

#include <algorithm>
#include <cstddef>

namespace stepscope::cpu {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kPrefetched = 2048;  // bytes of a row; what follows them the processor guesses

// Asks for the cache lines of one row.
inline void prefetchRow(const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < std::min(bytes, kPrefetched); at += kCacheLine) __builtin_prefetch(from + at);
}

}  // namespace stepscope::cpu
