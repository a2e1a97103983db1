// Operands with one element per channel, which lie the same in every layout (kernels/layout.h).
#pragma once

#include "kernels/shape.h"

namespace stepscope {

// Whether an operand that broadcasts to `whole` has its channels and one position for each: [N or 1, C, 1, …]; the first
// axis may be missing.
inline bool isChannelVector(const Dims& operand, const Dims& whole) {
  const std::size_t rank = whole.size();
  if (rank < 3 || operand.size() > rank || operand.size() + 1 < rank) return false;
  const std::size_t lead = rank - operand.size();
  for (std::size_t axis = lead; axis < rank; ++axis) {
    const std::int64_t extent = operand[axis - lead];
    if (axis == 0 ? extent != 1 && extent != whole[0] : extent != (axis == 1 ? whole[1] : 1)) return false;
  }
  return true;
}

}  // namespace stepscope
