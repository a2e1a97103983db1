// y[b] = relu?(alpha · op(a[b]) · op(b[b]) (+ beta · c, broadcast) (+ addend)) in f32. Implemented by matmul.cpp.
//
// Operands are read and results written where they are: transposition is a stride, broadcasting a repeated address.
// Which routine: GF/s on two AVX-512 cores, m256, best of three rounds over weights that are not in the caches (400 MB of
// them):
//   left     right    k     n      inner product  matmul primitive  sgemm  sgemm by columns  chosen
//   rows     rows     768   768    262            233               260    259               inner product (takes a bias for
//   nothing) rows     rows     3072  768    259            230               259    259               inner product rows
//   rows     768   2304   244            222               244    247               inner product rows     rows     768 3072
//   206            141               204    224               by columns, from n >= 4 k rows     columns  768   768    232
//   236               232    225               inner product rows     columns  768   3072   229            236 229    225
//   inner product rows     columns  2304  768    231            238               231    225               matmul primitive,
//   from k >= 2 n rows     columns  3072  768    215            248               215    228               matmul primitive
//   columns  rows     256   768+   236-257        157-247           235-259  -               sgemm
// The gradients of weights (columns, rows) with m of two to eight times n: blocks of rows, two per thread, where the
// routine's own split reads both operands from the shared cache. 3072 x 256 x 768 over cold results: 216 beside sgemm's 195;
// in a step of BERT-base, beside the products that were left alone, 3 % less time for the 24 gradients of which it
// computes 12. Not for vocabularies: 30522 x 256 x 768 reached 228 beside 214 alone, and took 12 % longer within the step.
// Alike, four blocks of columns for n = 3072 (210 beside 203 alone, 6 % longer within the step) and the primitive for all
// weights by columns (2 % ahead alone, no gain within the step): the whole step decides. Batches of products: with columns
// the matmul primitive is 3-12 % ahead; with rows sgemm, one batch per thread. Weights in oneDNN's packed layout reach
// 232-236 forward and 207-213 for the gradient of the input, and packing them costs a pass: they are read as they lie.
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
