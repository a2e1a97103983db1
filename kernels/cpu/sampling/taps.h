// The elements that one point reads along each axis, and sums over them, sixteen channels at a time ([positions, 16], see
// lane_planes.h). Inlined, so that they are compiled for the instruction set of the caller.
#pragma once

#include <cstdint>

#include "kernels/cpu/channels/lanes.h"

namespace stepscope::cpu {

// Places along one axis, counted in positions of the image, and their weights. A place below 0 lies outside: nothing is
// read, not even to be multiplied with 0.
struct AxisTaps {
  const std::int32_t* place;
  const float* weight;
  std::int64_t count;
};

// sum += sum over rows and columns of weight * x
SS_INLINE void sumTaps(const AxisTaps& rows, const AxisTaps& columns, const float* x, Floats& sum) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    if (rows.place[r] < 0) continue;
    const float* row = x + std::int64_t{rows.place[r]} * kLanes;
    Floats inner{};
    for (std::int64_t c = 0; c < columns.count; ++c) {
      if (columns.place[c] < 0) continue;
      Floats value;
      load(row + std::int64_t{columns.place[c]} * kLanes, value);
      inner += columns.weight[c] * value;
    }
    sum += rows.weight[r] * inner;
  }
}

// x += weight * value at all places
SS_INLINE void scatterTaps(const AxisTaps& rows, const AxisTaps& columns, const Floats& value, float* x) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    if (rows.place[r] < 0) continue;
    float* row = x + std::int64_t{rows.place[r]} * kLanes;
    const Floats share = rows.weight[r] * value;
    for (std::int64_t c = 0; c < columns.count; ++c) {
      if (columns.place[c] < 0) continue;
      Floats there;
      load(row + std::int64_t{columns.place[c]} * kLanes, there);
      there += columns.weight[c] * share;
      store(there, row + std::int64_t{columns.place[c]} * kLanes);
    }
  }
}

}  // namespace stepscope::cpu
