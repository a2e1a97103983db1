#include "kernels/rank_part.h"

#include <cstring>

namespace stepscope {

Tensor rankPart(const Tensor& whole, std::int64_t rank, std::int64_t ranks) {
  const std::int64_t elements = whole.elements(), length = partLength(elements, ranks);
  Tensor taken(whole.dtype(), {length});  // zeros
  const std::size_t size = dtypeSize(whole.dtype());
  if (const std::int64_t filled = partFilled(elements, rank, ranks); filled > 0)
    std::memcpy(taken.data(), static_cast<const std::byte*>(whole.data()) + static_cast<std::size_t>(rank * length) * size,
                static_cast<std::size_t>(filled) * size);
  return taken;
}

}  // namespace stepscope
