// The matrix product of the reference kernels: floats accumulate in double, integers modulo 2^64.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "kernels/matmul_shape.h"

namespace stepscope::reference {

template <typename T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

// An element as what is summed.
template <typename T>
Accumulator<T> summand(T value) {
  return static_cast<Accumulator<T>>(value);
}

// Calls store(i, j, sum over k of a(i, k) * b(k, j)) for every element of one m x n product.
template <typename A, typename B, typename Store>
void product(std::int64_t m, std::int64_t n, std::int64_t k, A&& a, B&& b, Store&& store) {
  using Sum = decltype(a(0, 0) * b(0, 0));
  constexpr std::int64_t kBlock = 64;
  std::array<Sum, kBlock> sums;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t first = 0; first < n; first += kBlock) {
      const std::int64_t width = std::min(kBlock, n - first);
      std::fill_n(sums.begin(), width, Sum{});
      for (std::int64_t t = 0; t < k; ++t) {
        const Sum factor = a(i, t);
        for (std::int64_t j = 0; j < width; ++j) sums[static_cast<std::size_t>(j)] += factor * b(t, first + j);
      }
      for (std::int64_t j = 0; j < width; ++j) store(i, first + j, sums[static_cast<std::size_t>(j)]);
    }
  }
}

}  // namespace stepscope::reference
