#include "kernels/matmul_shape.h"

namespace stepscope {
namespace {

Dims batchStrides(const Dims& operand, const Dims& batch) {
  Dims strides(batch.size(), 0);
  if (operand.size() < 2) return strides;
  const Dims own = rowMajorStrides(operand);
  const std::size_t rank = operand.size() - 2;
  for (std::size_t i = 0; i < rank; ++i)
    if (operand[i] != 1) strides[batch.size() - rank + i] = own[i];
  return strides;
}

}  // namespace

Result<MatMulShape> matMulShape(const Dims& a, const Dims& b, bool transA, bool transB) {
  if (a.empty() || b.empty()) return invalid("matrix product of " + dimsText(a) + " and " + dimsText(b) + "; expected rank 1 or more");
  MatMulShape s;
  std::int64_t inner = 0;
  if (a.size() == 1) {
    s.k = a[0];
    s.aRow = a[0];
  } else {
    const std::int64_t rows = a[a.size() - 2], columns = a.back();
    s.m = transA ? columns : rows;
    s.k = transA ? rows : columns;
    s.aRow = transA ? 1 : columns;
    s.aColumn = transA ? columns : 1;
  }
  if (b.size() == 1) {
    inner = b[0];
  } else {
    const std::int64_t rows = b[b.size() - 2], columns = b.back();
    inner = transB ? columns : rows;
    s.n = transB ? rows : columns;
    s.bRow = transB ? 1 : columns;
    s.bColumn = transB ? columns : 1;
  }
  if (inner != s.k)
    return invalid("matrix product of " + dimsText(a) + " and " + dimsText(b) + ": inner extents " + std::to_string(s.k) + " and " +
                   std::to_string(inner) + " differ");
  const Dims aBatch(a.begin(), a.size() > 2 ? a.end() - 2 : a.begin());
  const Dims bBatch(b.begin(), b.size() > 2 ? b.end() - 2 : b.begin());
  SS_ASSIGN(s.batch, broadcastDims(aBatch, bBatch));
  s.aStrides = batchStrides(a, s.batch);
  s.bStrides = batchStrides(b, s.batch);
  s.y = s.batch;
  if (a.size() > 1) s.y.push_back(s.m);
  if (b.size() > 1) s.y.push_back(s.n);
  return s;
}

}  // namespace stepscope
