// A tensor seen as [outer, axis, inner]: its lines along one axis, walked side by side where neighbours lie across it.
#pragma once

#include <algorithm>

#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {

struct Lines {
  std::int64_t outer = 1, axis = 1, inner = 1;
  std::int64_t total() const { return outer * axis * inner; }
};

// Lines of `dims` along axis `given`, which may be negative. Error: out of range.
inline Result<Lines> linesOf(const KernelSpec& spec, const Dims& dims, std::int64_t given) {
  const auto axis = normalizeAxis(given, static_cast<std::int64_t>(dims.size()));
  if (!axis) return notTaken(spec, "an axis out of range");
  const auto at = static_cast<std::size_t>(*axis);
  const std::span<const std::int64_t> all(dims);
  return Lines{elementCount(all.first(at)), dims[at], elementCount(all.subspan(at + 1))};
}

// visit(part, outer, first, n) for blocks of n <= columns lines that lie side by side; `part` counts threads.
template <typename Visit>
void forEachBlock(const Lines& lines, std::int64_t columns, int threads, Visit&& visit) {
  const std::int64_t blocks = (lines.inner + columns - 1) / columns, count = lines.outer * blocks;
  parallelParts(count, partsOf(count, lines.axis * std::min(columns, lines.inner), threads), 1,
                [&](int part, std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t at = i % blocks * columns;
                    visit(part, i / blocks, at, std::min(columns, lines.inner - at));
                  }
                });
}

}  // namespace stepscope::cpu
