#include "kernels/shape.h"

#include <algorithm>

namespace stepscope {

Result<std::int64_t> checkedElementCount(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  bool zero = false;
  for (std::int64_t extent : dims) {
    if (extent < 0) return invalid("shape " + dimsText(dims) + ": negative extent; expected 0 or more");
    if (extent == 0) zero = true;
    if (!zero && __builtin_mul_overflow(count, extent, &count))
      return fail(ErrorCode::kLimitExceeded, "shape " + dimsText(dims) + ": more than 2^63-1 elements");
  }
  return zero ? 0 : count;
}

std::int64_t elementCount(std::span<const std::int64_t> dims) {
  std::int64_t count = 1;
  for (std::int64_t extent : dims) count *= extent;
  return count;
}

Dims rowMajorStrides(std::span<const std::int64_t> dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

Result<Dims> broadcastDims(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Dims result(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const std::int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1) return invalid("shapes " + dimsText(a) + " and " + dimsText(b) + " do not broadcast");
    result[i] = x == 1 ? y : x;
  }
  return result;
}

std::optional<std::int64_t> normalizeAxis(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

std::string dimsText(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

}  // namespace stepscope
