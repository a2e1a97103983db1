#include "engine/comm/collective_bytes.h"

#include <algorithm>
#include <numeric>

#include "kernels/rank_part.h"

namespace stepscope {

std::int64_t collectiveSentBytes(std::string_view op, std::span<const std::int64_t> elements, DType dtype, int rank,
                                 int ranks, CollectiveEnds ends) {
  const auto size = static_cast<std::int64_t>(dtypeSize(dtype));
  if (ranks < 2 || size == 0) return 0;
  const std::int64_t all = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
  std::int64_t sent = 0;
  if (op == "AllReduce") {
    const std::int64_t piece = std::max<std::int64_t>(1, kCollectivePieceBytes / size) * ranks;
    for (std::int64_t first = 0; first < all; first += piece) {
      const std::int64_t count = std::min(piece, all - first);
      const std::int64_t mine = count * (rank + 1) / ranks - count * rank / ranks;
      sent += count - mine + mine * (ranks - 1);
    }
  } else if (op == "ReduceScatter" || op == "ReduceScatterRows") {
    for (const std::int64_t count : elements) sent += count - partFilled(count, rank, ranks);
  } else if (op == "AllGather" || op == "AllGatherRows") {
    for (const std::int64_t count : elements) sent += partFilled(count, rank, ranks) * (ranks - 1);
  } else if (op == "Broadcast") {
    sent = rank == ends.from ? all * (ranks - 1) : 0;
  } else if (op == "Reduce") {
    sent = rank == ends.to ? 0 : all;
  } else if (op == "AllToAll") {
    sent = all / ranks * (ranks - 1);
  } else if (op == "Recv") {
    sent = rank == ends.from && rank != ends.to ? all : 0;
  }
  return sent * size;
}

}  // namespace stepscope
