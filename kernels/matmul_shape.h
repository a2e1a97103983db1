// Shapes of matrix products: y[b, m, n] = sum_k a[b, m, k] * b[b, k, n] with numpy's batch broadcasting.
//
// Source     numpy.matmul, ONNX MatMul-13. A rank-1 operand is a row (left) or a column (right) that the result drops.
#pragma once

#include "kernels/shape.h"

namespace stepscope {

struct MatMulShape {
  Dims batch;                      // broadcast batch extents
  Dims aStrides, bStrides;         // per batch axis, in elements; 0 where the operand is broadcast
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t aRow = 1, aColumn = 1;  // strides of a[m, k] in elements, transposition included
  std::int64_t bRow = 1, bColumn = 1;  // strides of b[k, n]
  Dims y;                          // extents of the result

  std::int64_t batches() const { return elementCount(batch); }
  // Offsets in elements of batch number `index` (row-major over `batch`).
  std::int64_t aOffset(std::int64_t index) const { return offset(aStrides, index); }
  std::int64_t bOffset(std::int64_t index) const { return offset(bStrides, index); }

 private:
  std::int64_t offset(const Dims& strides, std::int64_t index) const {
    std::int64_t result = 0;
    for (std::size_t i = batch.size(); i-- > 0;) {
      result += index % batch[i] * strides[i];
      index /= batch[i];
    }
    return result;
  }
};

// `transA` and `transB` exchange the last two axes of operands of rank 2 or more.
// Errors: rank 0, inner extents that differ, batch extents that do not broadcast.
Result<MatMulShape> matMulShape(const Dims& a, const Dims& b, bool transA = false, bool transB = false);

}  // namespace stepscope
