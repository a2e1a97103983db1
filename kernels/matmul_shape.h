// Shapes and strides of matrix products: y[b, m, n] = sum_k a[b, m, k] * b[b, k, n] with numpy's batch broadcasting.
//
// Source     numpy.matmul, ONNX MatMul-13. A rank-1 operand is a row (left) or a column (right) that the result drops.
#pragma once

#include "kernels/attributes.h"
#include "kernels/shape.h"
#include "kernels/strided_view.h"

namespace stepscope {

// How operands are stored: transposed before the product, the result after it. Empty permutation = as it is.
struct ProductForm {
  bool transA = false, transB = false;  // exchange the last two axes of operands of rank 2 or more
  Dims permA, permB, permY;             // ONNX Transpose's `perm`; not together with transA or transB of the same operand

  // Reads the attributes of the same names.
  static ProductForm of(const Attributes& attrs);
};

struct MatMulShape {
  Dims batch;                           // broadcast batch extents
  Dims aStrides, bStrides;              // per batch axis, in elements; 0 where the operand is broadcast
  std::int64_t aStart = 0, bStart = 0;  // of the first element of a and b, in elements: not 0 for views
  Dims yStrides;                        // per batch axis, in elements
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t aRow = 1, aColumn = 1;  // strides of a[m, k] in elements, transposition included
  std::int64_t bRow = 1, bColumn = 1;  // strides of b[k, n]
  std::int64_t yRow = 1, yColumn = 1;  // strides of y[m, n]
  Dims y;                              // extents of the result as it is stored

  std::int64_t batches() const { return elementCount(batch); }
  // Offsets in elements of batch number `index` (row-major over `batch`).
  std::int64_t aOffset(std::int64_t index) const { return aStart + offset(aStrides, index); }
  std::int64_t bOffset(std::int64_t index) const { return bStart + offset(bStrides, index); }
  std::int64_t yOffset(std::int64_t index) const { return offset(yStrides, index); }

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

// Errors: rank 0, a permutation that is none of the operand's axes, inner extents that differ, batch extents that do not
// broadcast.
Result<MatMulShape> matMulShape(const StridedView& a, const StridedView& b, const ProductForm& form = {});
Result<MatMulShape> matMulShape(const Dims& a, const Dims& b, const ProductForm& form = {});
// Of operands a and b of these extents, of which attributes viewA and viewB may pick a part (strided_view.h), and in the
// form that the other attributes say. Errors: those of both.
Result<MatMulShape> matMulShape(const Dims& a, const Dims& b, const Attributes& attrs);

// Batches of rows that share one right operand are one taller matrix: the innermost batch axes become rows, as far as
// operand and result step evenly over them.
void mergeBatches(MatMulShape& shape);

}  // namespace stepscope
