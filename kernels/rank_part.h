// How the elements of a tensor are shared out over the ranks of a run, where each keeps a part of it (option ranks.shard).
//
// All parts have partLength() elements; the last ones of the last parts lie behind the end of the tensor and are zero. Parts
// one behind the other, without those, are the tensor in row-major order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/tensor.h"

namespace stepscope {

// Elements of each part. `ranks` >= 1.
constexpr std::int64_t partLength(std::int64_t elements, std::int64_t ranks) { return (elements + ranks - 1) / ranks; }

// How many elements of part `rank` are elements of the tensor.
constexpr std::int64_t partFilled(std::int64_t elements, std::int64_t rank, std::int64_t ranks) {
  const std::int64_t length = partLength(elements, ranks);
  return std::clamp<std::int64_t>(elements - rank * length, 0, length);
}

// Part `rank` of a tensor of numbers in memory of the host, as a tensor of one axis.
Tensor rankPart(const Tensor& whole, std::int64_t rank, std::int64_t ranks);

}  // namespace stepscope
