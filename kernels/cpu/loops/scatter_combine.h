// How a scatter joins an update with what stands at its place, on runs of elements.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "kernels/cpu/loops/loops.h"

namespace stepscope::cpu {

enum class Scatter { kReplace, kAdd, kMul, kMin, kMax };

// The attribute `reduction`: none, add, mul, min or max.
std::optional<Scatter> scatterOf(std::string_view reduction);

// NaN wins in min and max, as in the reference kernel.
template <Scatter kHow, typename T>
void combineElement(T& to, const T& value) {
  if constexpr (kHow == Scatter::kReplace) to = value;
  if constexpr (kHow == Scatter::kAdd) to += value;
  if constexpr (kHow == Scatter::kMul) to *= value;
  if constexpr (kHow == Scatter::kMin) to = value < to || value != value ? value : to;
  if constexpr (kHow == Scatter::kMax) to = value > to || value != value ? value : to;
}

// The same for `count` elements side by side.
template <Scatter kHow, typename T>
SS_CLONES void combineRun(T* to, const T* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) combineElement<kHow>(to[i], from[i]);
}

// Calls f with a tag of type std::integral_constant<Scatter, …>.
template <typename F>
void withScatter(Scatter how, F&& f) {
  switch (how) {
    case Scatter::kReplace: return f(std::integral_constant<Scatter, Scatter::kReplace>{});
    case Scatter::kAdd: return f(std::integral_constant<Scatter, Scatter::kAdd>{});
    case Scatter::kMul: return f(std::integral_constant<Scatter, Scatter::kMul>{});
    case Scatter::kMin: return f(std::integral_constant<Scatter, Scatter::kMin>{});
    case Scatter::kMax: return f(std::integral_constant<Scatter, Scatter::kMax>{});
  }
}

}  // namespace stepscope::cpu
