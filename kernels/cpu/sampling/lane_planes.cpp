#include "kernels/cpu/sampling/lane_planes.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/channels/lanes.h"

namespace stepscope::cpu {
namespace {

// Of every two rows kHalf apart: the lanes that have the bit in the upper one change places with those that lack it in the
// lower one.
template <int kHalf, int... kLane>
SS_INLINE void exchange(Floats (&rows)[kLanes], std::integer_sequence<int, kLane...>) {
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kHalf) != 0) continue;
    const Floats upper = rows[i], lower = rows[i + kHalf];
    rows[i] = __builtin_shufflevector(upper, lower, ((kLane & kHalf) != 0 ? 16 + kLane - kHalf : kLane)...);
    rows[i + kHalf] = __builtin_shufflevector(upper, lower, ((kLane & kHalf) != 0 ? 16 + kLane : kLane + kHalf)...);
  }
}
SS_INLINE void transpose(Floats (&rows)[kLanes]) {
  constexpr std::make_integer_sequence<int, 16> kAll{};
  exchange<8>(rows, kAll);
  exchange<4>(rows, kAll);
  exchange<2>(rows, kAll);
  exchange<1>(rows, kAll);
}

SS_LANE_CLONES void lanesOfSixteen(const float* planes, std::int64_t step, std::int64_t count, float* to) {
  for (std::int64_t at = 0; at + kLanes <= count; at += kLanes) {
    Floats rows[kLanes];
    for (int i = 0; i < kLanes; ++i) load(planes + i * step + at, rows[i]);
    transpose(rows);
    for (int i = 0; i < kLanes; ++i) store(rows[i], to + (at + i) * kLanes);
  }
}
SS_LANE_CLONES void planesOfSixteen(const float* from, std::int64_t count, float* planes, std::int64_t step) {
  for (std::int64_t at = 0; at + kLanes <= count; at += kLanes) {
    Floats rows[kLanes];
    for (int i = 0; i < kLanes; ++i) load(from + (at + i) * kLanes, rows[i]);
    transpose(rows);
    for (int i = 0; i < kLanes; ++i) store(rows[i], planes + i * step + at);
  }
}

}  // namespace

void lanesOfPlanes(const float* planes, std::int64_t step, std::int64_t lanes, std::int64_t count, float* to) {
  const std::int64_t whole = lanes == kLanes ? count / kLanes * kLanes : 0;
  lanesOfSixteen(planes, step, whole, to);
  for (std::int64_t i = whole; i < count; ++i)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) to[i * kLanes + lane] = lane < lanes ? planes[lane * step + i] : 0;
}

void planesOfLanes(const float* from, std::int64_t count, float* planes, std::int64_t step, std::int64_t lanes) {
  const std::int64_t whole = lanes == kLanes ? count / kLanes * kLanes : 0;
  planesOfSixteen(from, whole, planes, step);
  for (std::int64_t i = whole; i < count; ++i)
    for (std::int64_t lane = 0; lane < lanes; ++lane) planes[lane * step + i] = from[i * kLanes + lane];
}

}  // namespace stepscope::cpu
