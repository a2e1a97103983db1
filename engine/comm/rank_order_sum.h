// Sums over ranks, in the order of the ranks, so that every machine and every library comes to the same bits.
#pragma once

#include <span>

#include "kernels/tensor.h"

namespace stepscope {

// out[i] = ((part 0 [i] + part 1 [i]) + part 2 [i]) + …, times `factor` where it is not 1. float16 and bfloat16 are added up
// in float32 and rounded once; integers wrap around. `out` may be one of the parts. Errors: a type that cannot be added
// (bool, string); a factor for integers.
Status sumInRankOrder(DType dtype, std::span<const std::byte* const> parts, std::int64_t elements, double factor,
                      std::byte* out);

}  // namespace stepscope
