// y[b] = relu?(alpha · op(a[b]) · op(b[b]) (+ beta · c, broadcast) (+ addend)) in f32. Implemented by matmul.cpp.
//
// Operands are read and results written where they are: transposition is a stride, broadcasting a repeated address.
// Which routine, GF/s on two AVX-512 cores, best of five, for the shapes of transformer training (m256, k and n of 768 … 30522):
//   left operand    right operand    inner product  matmul primitive  sgemm    chosen
//   rows            rows             234-272        196-268           193-265  inner product (takes a bias for nothing)
//   rows            columns          241-257        230-250           217-246  inner product
//   columns         rows             236-257        157-247           235-257  sgemm
//   batches         columns          -              3-12 % ahead      -        matmul primitive
//   batches         rows             -              -                 ahead    sgemm, one batch per thread
// Weights in oneDNN's own packed layout reach 250-274, but packing them every step costs what it brings.
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
};

// The kernel's inputs are a, b, c when beta is not 0, and the addend.
Result<std::unique_ptr<Kernel>> makeProduct(const MatMulParams& params);

}  // namespace stepscope::cpu
