#include "engine/profile/tensor_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "engine/profile/tensor_summary.h"
#include "kernels/dispatch.h"

namespace stepscope {

namespace {

constexpr std::int64_t kBlock = 1 << 15;
using Bins = std::array<std::int64_t, 64>;

template <typename T>
void countInto(Bins& bins, const T* data, std::int64_t count, double minimum, double width) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(data[i]);
    if (!std::isfinite(x)) continue;
    const auto bin = width > 0 ? static_cast<std::size_t>((x - minimum) / width * 64) : 0;
    ++bins[std::min<std::size_t>(bin, 63)];
  }
}

}  // namespace

snapshot::TensorStatistics tensorStatistics(const TensorView& view) {
  snapshot::TensorStatistics s = tensorSummary(view);
  Bins bins{};
  if (view.present() && view.data && view.dtype != DType::kString) {
    const double minimum = s.min(), width = s.max() - s.min();
    const std::int64_t count = view.elements(), blocks = (count + kBlock - 1) / kBlock;
    dispatchFixed(view.dtype, [&](auto tag) {
      using T = decltype(tag);
      const T* data = static_cast<const T*>(view.data);
#pragma omp parallel if (blocks > 16)
      {
        Bins some{};
#pragma omp for schedule(static) nowait
        for (std::int64_t b = 0; b < blocks; ++b)
          countInto(some, data + b * kBlock, std::min(kBlock, count - b * kBlock), minimum, width);
#pragma omp critical(stepscope_histogram)
        for (std::size_t i = 0; i < bins.size(); ++i) bins[i] += some[i];
      }
    });
  }
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
