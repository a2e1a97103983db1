// The steps of elementwise chains (kernels/pointwise_program.h) as loops over a block that stays in the first cache.
#pragma once

#include <cstdint>

#include "kernels/cpu/loops/loops.h"
#include "kernels/pointwise_program.h"

namespace stepscope::cpu {

// The most elements of a block.
inline constexpr std::int64_t kChainBlock = 1024;

// n <= kChainBlock elements; y may be any of the operands. Masks are 0 and 1. Steps of fewer operands get the first one in
// place of the others.
using StepLoop = void (*)(const float* a, const float* b, const float* c, float* y, std::int64_t n);
StepLoop stepLoopOf(PointwiseOp op);

}  // namespace stepscope::cpu
