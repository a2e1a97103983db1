// y[b] = relu?(alpha · op(a[b]) · op(b[b]) (+ beta · c, broadcast) (+ addend)) in f32 or bf16. Implemented by matmul.cpp.
//
// Operands are read and results written where they are: transposition is a stride, broadcasting a repeated address.
// Which routine takes a product was measured (tests/bench/RESULTS.md):
//   left     right    routine
//   rows     rows     oneDNN's inner product, which adds a bias at no cost; from n >= 4 k sgemm by columns
//   rows     columns  inner product; from k >= 2 n the matmul primitive
//   columns  rows     sgemm
// The gradient of weights (columns, rows) with m of two to eight times n is cut into blocks of rows, two per thread: the
// routine's own split would read both operands from the shared cache. Larger m, the rows of a vocabulary, are left alone,
// because the whole step took longer. Batches of products: with columns the matmul primitive, once for each place along all
// batch axes but the largest; with rows sgemm, one batch per thread. Where sums are to be cut by size alone
// (kernels/fixed_parts.h): sgemm in blocks of rows or columns, each by one thread. Weights are read as they lie: to pack
// them for oneDNN costs a pass that the products do not win back.
#pragma once

#include "kernels/kernel.h"
#include "kernels/matmul_shape.h"

namespace stepscope::cpu {

struct MatMulParams {
  MatMulShape shape;
  float alpha = 1, beta = 0;
  std::size_t a = 0, b = 1;  // inputs that are the left and the right operand
  // Strides in elements of the addend c (0 where it broadcasts); not read when beta is 0.
  std::int64_t cRow = 0, cColumn = 0;
  bool addend = false;  // input 3, of the result's extents; the result may be its memory
  bool relu = false;
  int threads = 1;
  // Of all operands. bfloat16 adds up in float32; the matmul primitive takes it where the processor multiplies it, else
  // tiles in float32 (widened_product.h); both with a bias or nothing to add.
  DType dtype = DType::kF32;
};

// The kernel's inputs are a, b, c when beta is not 0, and the addend.
Result<std::unique_ptr<Kernel>> makeProduct(const MatMulParams& params);

}  // namespace stepscope::cpu
