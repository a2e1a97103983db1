// Positions along the kept or reduced axes of a tensor, whose plan kernels/reference/reduction makes.
#pragma once

#include <cstdint>

#include "kernels/reference/reduction/loops.h"

namespace stepscope::cpu {

// The offset of position `index` of the first `rank` axes, row-major.
inline std::int64_t offsetOf(const reference::Axes& axes, int rank, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = rank; i-- > 0;) {
    offset += index % axes.extents[static_cast<std::size_t>(i)] * axes.strides[static_cast<std::size_t>(i)];
    index /= axes.extents[static_cast<std::size_t>(i)];
  }
  return offset;
}

}  // namespace stepscope::cpu
