// Four neighbours that a thread moves at once. Rows of float32 that the threads of a block share: which elements a thread
// has, and in which order it meets them, depends on the width alone: a row that begins between multiples of sixteen bytes
// gives the same bits, slower.
#pragma once

#include <initializer_list>
#include <type_traits>

#include "kernels/cuda/support.h"

namespace stepscope::cuda {

inline constexpr int kQuad = 4;

// Calls visit(j, n) for the elements j … j + n - 1 of each part of this thread; n: an integral_constant of kQuad or 1.
template <typename Visit>
SS_DEVICE void forEachPart(std::int64_t width, Visit&& visit) {
  const std::int64_t thread = gpu::threadIndex(), threads = gpu::blockSize();
  if (width % kQuad == 0)
    for (std::int64_t j = kQuad * thread; j < width; j += kQuad * threads) visit(j, std::integral_constant<int, kQuad>());
  else
    for (std::int64_t j = thread; j < width; j += threads) visit(j, std::integral_constant<int, 1>());
}

// Elements from `i` on; wide: a multiple of four from an address that is one of sixteen bytes.
template <int kCount>
SS_DEVICE void loadPart(const Global<const float>& x, std::int64_t i, bool wide, float (&to)[kCount]) {
  if constexpr (kCount == kQuad)
    if (wide) {
      const gpu::Four<float> four = x.four(i);
      to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
      return;
    }
  for (int e = 0; e < kCount; ++e) to[e] = x[i + e];
}
template <int kCount>
SS_DEVICE void storePart(const Global<float>& y, std::int64_t i, bool wide, const float (&from)[kCount]) {
  if constexpr (kCount == kQuad)
    if (wide) return y.setFour(i, {from[0], from[1], from[2], from[3]});
  for (int e = 0; e < kCount; ++e) y[i + e] = from[e];
}

// The n elements from `first` on, kQuad at once where all are there.
template <typename T>
SS_DEVICE void load(const Global<const T>& x, std::int64_t first, int n, T (&to)[kQuad]) {
  if (n == kQuad) {
    const gpu::Four<T> four = x.four(first);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    for (int e = 0; e < n; ++e) to[e] = x[first + e];
  }
}
// The way back.
template <typename T>
SS_DEVICE void store(const Global<T>& y, std::int64_t first, int n, const T (&from)[kQuad]) {
  if (n == kQuad)
    y.setFour(first, {from[0], from[1], from[2], from[3]});
  else
    for (int e = 0; e < n; ++e) y[first + e] = from[e];
}

// Whether rows of that width are moved so, given where they begin; null: an operand that is not there.
inline bool movesQuads(std::int64_t width, std::initializer_list<const void*> operands) {
  return std::ranges::all_of(operands, [&](const void* data) {
    return movesWide(data, nullptr, width * static_cast<std::int64_t>(sizeof(float)));
  });
}

}  // namespace stepscope::cuda
