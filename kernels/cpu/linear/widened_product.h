// Products of bfloat16 where the processor multiplies float32 faster (bfloat16_products.h): tiles of the operands are
// widened to float32, multiplied by sgemm, and a tile of the result is rounded once. So no float32 copy of an operand goes
// to memory: the workspace is that of a few tiles, 1.8 MiB per thread.
#pragma once

#include "kernels/cpu/linear/matmul.h"

namespace stepscope::cpu {

// Strides are settled: the result is written by rows, each operand has an axis of neighbouring elements. `bias`: input 2 is
// one row that is added. Every tile is computed by one thread, and tiles depend on extents alone.
std::unique_ptr<Kernel> makeWidenedProduct(MatMulParams params, bool bias);

}  // namespace stepscope::cpu
