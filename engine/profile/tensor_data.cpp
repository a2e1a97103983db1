#include "engine/profile/tensor_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/dispatch.h"

namespace stepscope {

snapshot::TensorStatistics tensorStatistics(const TensorView& view) {
  snapshot::TensorStatistics s;
  s.set_count(view.elements());
  double minimum = INFINITY, maximum = -INFINITY, sum = 0, squares = 0;
  std::int64_t zeros = 0, nan = 0, inf = 0, negative = 0, finite = 0;
  const auto each = [&](auto&& visit) {
    dispatchFixed(view.dtype, [&](auto tag) {
      using T = decltype(tag);
      const T* data = static_cast<const T*>(view.data);
      for (std::int64_t i = 0; i < view.elements(); ++i) visit(static_cast<double>(data[i]));
    });
  };
  each([&](double x) {
    if (std::isnan(x)) {
      ++nan;
      return;
    }
    if (x < 0) ++negative;
    if (std::isinf(x)) {
      ++inf;
      return;
    }
    ++finite;
    if (x == 0) ++zeros;
    minimum = std::min(minimum, x);
    maximum = std::max(maximum, x);
    sum += x;
    squares += x * x;
  });
  const double mean = finite > 0 ? sum / static_cast<double>(finite) : 0;
  s.set_zeros(zeros);
  s.set_nan(nan);
  s.set_inf(inf);
  s.set_negative(negative);
  s.set_min(finite > 0 ? minimum : 0);
  s.set_max(finite > 0 ? maximum : 0);
  s.set_mean(mean);
  s.set_norm(std::sqrt(squares));
  double deviation = 0;
  std::array<std::int64_t, 64> bins{};
  const double width = finite > 0 ? maximum - minimum : 0;
  each([&](double x) {
    if (!std::isfinite(x)) return;
    deviation += (x - mean) * (x - mean);
    const auto bin = width > 0 ? static_cast<std::size_t>((x - minimum) / width * 64) : 0;
    ++bins[std::min<std::size_t>(bin, 63)];
  });
  s.set_std(finite > 0 ? std::sqrt(deviation / static_cast<double>(finite)) : 0);
  for (const std::int64_t count : bins) s.add_histogram(count);
  return s;
}

Status addContents(const TensorView& view, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& extent,
                   std::int64_t limit, snapshot::TensorData& out) {
  if (limit <= 0) return {};
  const std::size_t rank = view.dims.size();
  if ((!begin.empty() && begin.size() != rank) || (!extent.empty() && extent.size() != rank))
    return invalid(fmt::format("value '{}': slice of rank {}; expected rank {}", out.name(),
                               std::max(begin.size(), extent.size()), rank));
  std::vector<std::int64_t> from(rank, 0), size = view.dims;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (!begin.empty()) from[axis] = begin[axis];
    if (from[axis] < 0 || from[axis] > view.dims[axis])
      return invalid(fmt::format("value '{}': slice begins at {} on axis {}; expected 0..{}", out.name(), from[axis], axis,
                                 view.dims[axis]));
    size[axis] =
        std::min(extent.empty() ? view.dims[axis] : std::max<std::int64_t>(extent[axis], 0), view.dims[axis] - from[axis]);
  }
  // Cut the outer axes first, so that rows stay whole as long as they can.
  for (std::size_t axis = 0; axis < rank; ++axis) {
    std::int64_t rest = 1;
    for (std::size_t inner = axis + 1; inner < rank; ++inner) rest *= std::max<std::int64_t>(size[inner], 1);
    const std::int64_t outer = std::max<std::int64_t>(1, limit / std::max<std::int64_t>(rest, 1));
    size[axis] = std::min(size[axis], outer);
    limit = std::max<std::int64_t>(1, limit / std::max<std::int64_t>(size[axis], 1));
  }
  for (const std::int64_t b : from) out.add_begin(b);
  for (const std::int64_t e : size) out.add_extent(e);
  const Dims strides = rowMajorStrides(view.dims);
  const std::int64_t total = elementCount(size);
  const std::size_t element = dtypeSize(view.dtype);
  std::string data;
  if (view.dtype != DType::kString) data.resize(static_cast<std::size_t>(total) * element);
  std::vector<std::int64_t> index(rank, 0);
  for (std::int64_t k = 0; k < total; ++k) {
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) offset += (from[axis] + index[axis]) * strides[axis];
    if (view.dtype == DType::kString)
      out.add_strings(static_cast<const std::string*>(view.data)[offset]);
    else
      std::memcpy(data.data() + static_cast<std::size_t>(k) * element,
                  static_cast<const std::byte*>(view.data) + static_cast<std::size_t>(offset) * element, element);
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++index[axis] < size[axis]) break;
      index[axis] = 0;
    }
  }
  out.set_data(std::move(data));
  return {};
}

}  // namespace stepscope
