// y[b] = alpha · op(a[b]) · op(b[b]) (+ beta · c, broadcast) in f32. Implemented by matmul.cpp.
//
// Which routine (measured per core on AVX-512, shapes of transformer training, GF/s): with a transposed right operand the matmul
// primitive (brgemm) is 3-12 % ahead of sgemm; otherwise sgemm is as fast or up to 2.5 times faster (m256 n3072 k768: 96 against
// 38). Batches of products run side by side, one thread each, through sgemm.
// Operands are read where they are: transposition is a stride, broadcasting a repeated address.
#pragma once

#include "kernels/kernel.h"
#include "kernels/matmul_shape.h"

namespace stepscope::cpu {

struct MatMulParams {
  MatMulShape shape;
  float alpha = 1, beta = 0;
  // Strides in elements of the addend c (0 where it broadcasts); not read when beta is 0.
  std::int64_t cRow = 0, cColumn = 0;
  int threads = 1;
};

// The kernel's inputs are a, b and, when beta is not 0, c.
Result<std::unique_ptr<Kernel>> makeProduct(const MatMulParams& params);

}  // namespace stepscope::cpu
