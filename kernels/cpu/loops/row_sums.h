// Sums over a row of floats in lanes of their own, four chains of them so that none waits for the one before. The order does
// not depend on the instruction set, nor on whether the compiler makes vectors of it.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cpu/loops/vector_math.h"

namespace stepscope::cpu {

// Loops take kSumChains * kSumLanes elements at a time; the few that are left over are summed one by one.
inline constexpr std::int64_t kSumLanes = 16, kSumChains = 4;

// Sixteen and four floats, anywhere in memory.
typedef float SumLanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef float FourFloats __attribute__((vector_size(16), aligned(4), may_alias));

// Sixteen floats from memory.
SS_INLINE void loadLanes(const float* from, SumLanes& to) { to = *reinterpret_cast<const SumLanes*>(from); }

// The sum of several chains of lanes.
SS_INLINE float sumOfLanes(const SumLanes (&chains)[kSumChains]) {
  const SumLanes all = (chains[0] + chains[1]) + (chains[2] + chains[3]);
  std::array<float, kSumLanes> lanes;
  *reinterpret_cast<SumLanes*>(lanes.data()) = all;
  const auto* fours = reinterpret_cast<const FourFloats*>(lanes.data());
  const FourFloats four = (fours[0] + fours[1]) + (fours[2] + fours[3]);
  return (four[0] + four[1]) + (four[2] + four[3]);
}

}  // namespace stepscope::cpu
