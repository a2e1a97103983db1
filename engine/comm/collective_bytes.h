// What a rank sends in a collective, as Communicator sends it, to the byte: for plans, before anything runs. The headers by
// which ranks find each other, 512 bytes to each, are not in it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/dtype.h"

namespace stepscope {

// Where a collective is not the same for all ranks: who sends (the root of a Broadcast), who receives (that of a Reduce).
struct CollectiveEnds {
  int from = -1, to = -1;
};

// `elements`: of the whole tensors of type `dtype`, one number each. `op`: a collective by its name; others: 0. A message is
// that of its Recv.
std::int64_t collectiveSentBytes(std::string_view op, std::span<const std::int64_t> elements, DType dtype, int rank,
                                 int ranks, CollectiveEnds ends = {});

// Of a sum that each rank makes at a time: bounds the memory that parts of others take.
inline constexpr std::int64_t kCollectivePieceBytes = 1 << 20;

}  // namespace stepscope
