#include "kernels/matmul_shape.h"

#include <algorithm>

namespace stepscope {
namespace {

Result<StridedView> permuted(const StridedView& stored, const Dims& perm, bool trans, const char* what) {
  StridedView result = stored;
  if (!perm.empty()) {
    Dims sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      if (sorted.size() != stored.dims.size() || sorted[i] != static_cast<std::int64_t>(i))
        return invalid(std::string("matrix product: ") + what + " is " + dimsText(perm) + "; expected the axes of " +
                       dimsText(stored.dims) + " in some order");
    result = stored.transposed(perm);
  }
  if (trans && result.dims.size() > 1) {
    std::swap(result.dims.back(), result.dims[result.dims.size() - 2]);
    std::swap(result.strides.back(), result.strides[result.dims.size() - 2]);
  }
  return result;
}

Dims batchStrides(const StridedView& operand, const Dims& batch) {
  Dims strides(batch.size(), 0);
  if (operand.dims.size() < 2) return strides;
  const std::size_t rank = operand.dims.size() - 2;
  for (std::size_t i = 0; i < rank; ++i)
    if (operand.dims[i] != 1) strides[batch.size() - rank + i] = operand.strides[i];
  return strides;
}

}  // namespace

ProductForm ProductForm::of(const Attributes& attrs) {
  ProductForm form;
  form.transA = attrs.integer("transA", 0) != 0;
  form.transB = attrs.integer("transB", 0) != 0;
  form.permA = attrs.integers("permA");
  form.permB = attrs.integers("permB");
  form.permY = attrs.integers("permY");
  return form;
}

Result<MatMulShape> matMulShape(const Dims& a, const Dims& b, const ProductForm& form) {
  return matMulShape(StridedView::whole(a), StridedView::whole(b), form);
}

Result<MatMulShape> matMulShape(const Dims& a, const Dims& b, const Attributes& attrs) {
  SS_ASSIGN(const StridedView left, StridedView::of(a, attrs, "viewA"));
  SS_ASSIGN(const StridedView right, StridedView::of(b, attrs, "viewB"));
  return matMulShape(left, right, ProductForm::of(attrs));
}

Result<MatMulShape> matMulShape(const StridedView& a, const StridedView& b, const ProductForm& form) {
  if (a.dims.empty() || b.dims.empty())
    return invalid("matrix product of " + dimsText(a.dims) + " and " + dimsText(b.dims) + "; expected rank 1 or more");
  SS_ASSIGN(const StridedView left, permuted(a, form.permA, form.transA, "permA"));
  SS_ASSIGN(const StridedView right, permuted(b, form.permB, form.transB, "permB"));
  const std::size_t rankA = a.dims.size(), rankB = b.dims.size();
  MatMulShape s;
  s.aStart = left.offset;
  s.bStart = right.offset;
  s.k = left.dims.back();
  s.aColumn = left.strides.back();
  s.aRow = rankA > 1 ? left.strides[rankA - 2] : s.k;
  if (rankA > 1) s.m = left.dims[rankA - 2];
  const std::int64_t inner = rankB > 1 ? right.dims[rankB - 2] : right.dims[0];
  s.bRow = rankB > 1 ? right.strides[rankB - 2] : 1;
  s.bColumn = rankB > 1 ? right.strides.back() : 1;
  if (rankB > 1) s.n = right.dims.back();
  if (inner != s.k)
    return invalid("matrix product of " + dimsText(a.dims) + " and " + dimsText(b.dims) + ": inner extents " +
                   std::to_string(s.k) + " and " + std::to_string(inner) + " differ");
  const Dims aBatch(left.dims.begin(), rankA > 2 ? left.dims.end() - 2 : left.dims.begin());
  const Dims bBatch(right.dims.begin(), rankB > 2 ? right.dims.end() - 2 : right.dims.begin());
  SS_ASSIGN(s.batch, broadcastDims(aBatch, bBatch));
  s.aStrides = batchStrides(left, s.batch);
  s.bStrides = batchStrides(right, s.batch);

  Dims y = s.batch;
  if (rankA > 1) y.push_back(s.m);
  if (rankB > 1) y.push_back(s.n);
  SS_ASSIGN(const StridedView stored, permuted(StridedView::whole(y), form.permY, false, "permY"));
  s.y = stored.dims;
  const Dims storedStrides = rowMajorStrides(s.y);
  Dims strides = storedStrides;  // of the product's own axes
  for (std::size_t i = 0; i < form.permY.size(); ++i) strides[static_cast<std::size_t>(form.permY[i])] = storedStrides[i];
  s.yStrides.assign(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(s.batch.size()));
  s.yRow = rankA > 1 ? strides[s.batch.size()] : s.n;
  s.yColumn = rankB > 1 ? strides.back() : 1;
  return s;
}

void mergeBatches(MatMulShape& s) {
  if (std::any_of(s.bStrides.begin(), s.bStrides.end(), [](std::int64_t stride) { return stride != 0; })) return;
  while (!s.batch.empty()) {
    if (s.batch.back() != 1 && (s.aStrides.back() != s.m * s.aRow || s.yStrides.back() != s.m * s.yRow)) return;
    s.m *= s.batch.back();
    s.batch.pop_back();
    s.aStrides.pop_back();
    s.bStrides.pop_back();
    s.yStrides.pop_back();
  }
}

}  // namespace stepscope
