// Where element i of a tensor lies in others: extents of up to eight axes, outermost first, and a stride per axis and
// tensor.
#pragma once

#include <vector>

#include "kernels/cuda/body.h"

namespace stepscope::cuda {

inline constexpr int kMostAxes = 8;

template <int kTensors>
struct Walk {
  int rank = 0;
  std::int64_t extents[kMostAxes] = {};
  std::int64_t strides[kTensors][kMostAxes] = {};

  // Offsets in all tensors of element `i` in row-major order.
  SS_DEVICE void offsets(std::int64_t i, std::int64_t (&at)[kTensors]) const {
    for (int t = 0; t < kTensors; ++t) at[t] = 0;
    for (int a = rank - 1; a >= 0; --a) {
      const std::int64_t position = i % extents[a];
      i /= extents[a];
      for (int t = 0; t < kTensors; ++t) at[t] += position * strides[t][a];
    }
  }

  // Adds an axis inside the others, joined with the one before where all tensors go on there. False: too many axes.
  bool add(std::int64_t extent, const std::int64_t (&stride)[kTensors]) {
    if (extent == 1) return true;
    bool joins = rank > 0;
    for (int t = 0; t < kTensors && joins; ++t) joins = strides[t][rank - 1] == stride[t] * extent;
    if (!joins && rank == kMostAxes) return false;
    if (!joins) extents[rank++] = 1;
    extents[rank - 1] *= extent;
    for (int t = 0; t < kTensors; ++t) strides[t][rank - 1] = stride[t];
    return true;
  }
};

}  // namespace stepscope::cuda
