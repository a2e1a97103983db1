#include "engine/comm/rank_order_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/dispatch.h"

namespace stepscope {
namespace {

// A block is small enough to stay in the nearest cache while part after part is added to it.
constexpr std::int64_t kBlock = 2048;

template <typename T>
auto accumulatorOf() {
  if constexpr (std::is_same_v<T, double>)
    return double{};
  else if constexpr (std::is_integral_v<T>)
    return std::make_unsigned_t<T>{};
  else
    return float{};
}

template <typename T>
void sumBlocks(std::span<const std::byte* const> parts, std::int64_t elements, double factor, std::byte* out) {
  using Sum = decltype(accumulatorOf<T>());
  std::array<Sum, kBlock> sums;
  T* const target = reinterpret_cast<T*>(out);
  for (std::int64_t first = 0; first < elements; first += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, elements - first));
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const T* const part = reinterpret_cast<const T*>(parts[p]) + first;
      if (p == 0)
        for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(part[i]);
      else
        for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(sums[i] + static_cast<Sum>(part[i]));
    }
    if (factor != 1)
      for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(sums[i] * static_cast<Sum>(factor));
    for (std::size_t i = 0; i < count; ++i) target[first + static_cast<std::int64_t>(i)] = static_cast<T>(sums[i]);
  }
}

}  // namespace

Status sumInRankOrder(DType dtype, std::span<const std::byte* const> parts, std::int64_t elements, double factor,
                      std::byte* out) {
  if (factor != 1 && !isFloating(dtype))
    return invalid(fmt::format("mean over ranks: {}; expected a floating type", dtypeName(dtype)));
  const bool done = dispatchNumeric(dtype, [&](auto tag) { sumBlocks<decltype(tag)>(parts, elements, factor, out); });
  if (!done) return invalid(fmt::format("sum over ranks: {}; expected a number", dtypeName(dtype)));
  return {};
}

}  // namespace stepscope
