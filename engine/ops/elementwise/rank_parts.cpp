#include "engine/ops/elementwise/rank_parts.h"

#include <fmt/format.h>

#include "kernels/rank_part.h"

namespace stepscope::ops {

Result<std::int64_t> ranksOf(const ShapeContext& c) {
  const std::int64_t ranks = c.attrs().integer("ranks", 0), rank = c.attrs().integer("rank", -1);
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return c.error(
        fmt::format("rank {} of {} ranks; expected attributes rank and ranks with 0 <= rank < ranks", rank, ranks));
  return ranks;
}

std::optional<Shape> partShape(ShapeContext& c, std::size_t i, std::size_t output, std::int64_t ranks) {
  const auto dims = c.rankKnown(i) ? knownDims(*c.inputShape(i)) : std::nullopt;
  if (!dims) return Shape{c.freshDim(output, 0)};
  return Shape{Dim(partLength(elementCount(*dims), ranks))};
}

}  // namespace stepscope::ops
