// What a rank sends in a collective, as Communicator sends it, to the byte: for plans, before anything runs. The headers by
// which ranks find each other, 512 bytes to each, are not in it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/dtype.h"

namespace stepscope {

// `elements`: of the whole tensors of type `dtype`, one number each. `op`: AllReduce, ReduceScatter or AllGather; others: 0.
std::int64_t collectiveSentBytes(std::string_view op, std::span<const std::int64_t> elements, DType dtype, int rank,
                                 int ranks);

// Of a sum that each rank makes at a time: bounds the memory that parts of others take.
inline constexpr std::int64_t kCollectivePieceBytes = 1 << 20;

}  // namespace stepscope
