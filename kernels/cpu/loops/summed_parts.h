// The parts of work that adds up over them: by the number of threads, or by size alone (kernels/fixed_parts.h). To be asked
// where the kernel is made.
#pragma once

#include "kernels/cpu/loops/support.h"
#include "kernels/fixed_parts.h"

namespace stepscope::cpu {

inline Parts summedParts(std::int64_t count, std::int64_t cost, int threads) {
  Parts parts = partsOf(count, cost, partsForSums(threads));
  parts.team = std::min(parts.team, std::max(1, threads));
  return parts;
}

// Whether another number of threads cuts the sum of `count` units into other parts.
inline bool sumCutByThreads(std::int64_t count, std::int64_t cost) {
  return !FixedParts::here() && cutByThreads(count, cost);
}

}  // namespace stepscope::cpu
