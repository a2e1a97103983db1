// Loops over sixteen elements at a time, float32 or bfloat16 in memory and floats in registers, the same for plain tensors
// (sixteen neighbours of one channel) and for nChw16c (one element of sixteen channels). Sums run in double, lane by lane,
// so that their order does not depend on the thread count.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/half.h"
#include "kernels/kernel.h"

#ifdef SS_SANITIZED
#define SS_LANE_CLONES
#else
#define SS_LANE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define SS_INLINE inline __attribute__((always_inline))

namespace stepscope::cpu {

inline constexpr std::int64_t kLanes = kLayoutLanes;

// Sixteen floats, and half of them as doubles; they may lie anywhere in memory.
typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef double HalfDoubles __attribute__((vector_size(64), aligned(8), may_alias));
// Sixteen elements of bfloat16, and the words of sixteen floats.
typedef std::uint16_t Halves __attribute__((vector_size(32), aligned(2), may_alias));
typedef std::uint32_t Words __attribute__((vector_size(64)));

// Where the elements of a group of channels are: one channel of a plain tensor, sixteen of a blocked one.
struct ChannelGroups {
  std::int64_t batch = 1, groups = 1, lanes = 1,
               length = 1;  // length: floats of one image that belong to one group, contiguous
  std::int64_t offset(std::int64_t image, std::int64_t group) const { return (image * groups + group) * length; }
  double count() const { return static_cast<double>(batch) * static_cast<double>(length) / static_cast<double>(lanes); }

  static ChannelGroups of(const OperandSpec& x) {
    ChannelGroups g;
    const std::int64_t channels = x.dims.size() > 1 ? x.dims[1] : 1;
    g.batch = x.dims[0];
    const std::int64_t inner = elementCount(x.dims) / (g.batch * channels);
    // Without spatial extent the two layouts are one.
    g.lanes = x.layout == Layout::kChannels16 || (inner == 1 && channels % kLanes == 0) ? kLanes : 1;
    g.groups = channels / g.lanes;
    g.length = inner * g.lanes;
    return g;
  }
};

// One number per lane.
using LaneSums = std::array<double, kLanes>;
using LaneFloats = std::array<float, kLanes>;

// Memory to registers and back, and floats as doubles.
SS_INLINE void load(const float* from, Floats& to) { to = *reinterpret_cast<const Floats*>(from); }
SS_INLINE void store(const Floats& from, float* to) { *reinterpret_cast<Floats*>(to) = from; }
SS_INLINE void load(const BFloat16* from, Floats& to) {
  const Words words = __builtin_convertvector(*reinterpret_cast<const Halves*>(from), Words) << 16;
  __builtin_memcpy(&to, &words, sizeof to);
}
// Rounds to nearest even, as BFloat16 does.
SS_INLINE void store(const Floats& from, BFloat16* to) {
  Words words;
  __builtin_memcpy(&words, &from, sizeof words);
  const Words high = words >> 16, rounded = (words + 0x7fffu + (high & 1u)) >> 16;
  const Words kept = (words & 0x7fffffffu) > 0x7f800000u ? high | 0x40u : rounded;
  *reinterpret_cast<Halves*>(to) = __builtin_convertvector(kept, Halves);
}
SS_INLINE void load(const double* from, HalfDoubles& low, HalfDoubles& high) {
  low = *reinterpret_cast<const HalfDoubles*>(from);
  high = *reinterpret_cast<const HalfDoubles*>(from + 8);
}
SS_INLINE void store(const HalfDoubles& low, const HalfDoubles& high, double* to) {
  *reinterpret_cast<HalfDoubles*>(to) = low;
  *reinterpret_cast<HalfDoubles*>(to + 8) = high;
}
SS_INLINE void widen(const Floats& from, HalfDoubles& low, HalfDoubles& high) {
  low = __builtin_convertvector(__builtin_shufflevector(from, from, 0, 1, 2, 3, 4, 5, 6, 7), HalfDoubles);
  high = __builtin_convertvector(__builtin_shufflevector(from, from, 8, 9, 10, 11, 12, 13, 14, 15), HalfDoubles);
}

// The sum of all lanes, in order.
inline double total(const LaneSums& sums) {
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

}  // namespace stepscope::cpu
