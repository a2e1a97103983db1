#include "engine/profile/tensor_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/loops/loops.h"
#include "kernels/dispatch.h"

namespace stepscope {
namespace {

constexpr std::int64_t kBlock = 1 << 15;

struct Part {
  std::int64_t finite = 0, zeros = 0, nan = 0, inf = 0, negative = 0;
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  double sum = 0, squares = 0;
  double deviations = 0;  // sum of squared distances from the mean

  void join(const Part& other) {
    if (other.finite > 0 && finite > 0) {
      const auto n = static_cast<double>(finite), m = static_cast<double>(other.finite);
      const double apart = other.sum / m - sum / n;
      deviations += other.deviations + apart * apart * n * m / (n + m);
    } else if (other.finite > 0) {
      deviations = other.deviations;
    }
    finite += other.finite;
    zeros += other.zeros;
    nan += other.nan;
    inf += other.inf;
    negative += other.negative;
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    sum += other.sum;
    squares += other.squares;
  }
};

// Four-byte floats are most of what there is: without branches, and in an order that the compiler may choose, it fills
// vectors.
SS_CLONES Part measure(const float* x, std::int64_t count) {
  int zeros = 0, nan = 0, inf = 0, negative = 0;
  float least = std::numeric_limits<float>::infinity(), most = -least;
  double sum = 0, squares = 0;
  constexpr float kLargest = std::numeric_limits<float>::max();
#pragma omp simd reduction(+ : zeros, nan, inf, negative, sum, squares) reduction(min : least) reduction(max : most)
  for (std::int64_t i = 0; i < count; ++i) {
    const float v = x[i];
    const bool finite = std::abs(v) <= kLargest;
    nan += v != v ? 1 : 0;
    inf += std::abs(v) > kLargest ? 1 : 0;
    negative += v < 0 ? 1 : 0;
    zeros += v == 0 ? 1 : 0;
    const float low = finite ? v : std::numeric_limits<float>::infinity(),
                high = finite ? v : -std::numeric_limits<float>::infinity();
    least = low < least ? low : least;
    most = high > most ? high : most;
    const double d = finite ? static_cast<double>(v) : 0.0;
    sum += d;
    squares += d * d;
  }
  Part part;
  part.finite = count - nan - inf;
  part.zeros = zeros;
  part.nan = nan;
  part.inf = inf;
  part.negative = negative;
  part.least = least;
  part.most = most;
  part.sum = sum;
  part.squares = squares;
  return part;
}

template <typename T>
Part measure(const T* x, std::int64_t count) {
  Part part;
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(x[i]);
    if (std::isnan(v)) {
      ++part.nan;
      continue;
    }
    part.negative += v < 0;
    if (std::isinf(v)) {
      ++part.inf;
      continue;
    }
    ++part.finite;
    part.zeros += v == 0;
    part.least = std::min(part.least, v);
    part.most = std::max(part.most, v);
    part.sum += v;
    part.squares += v * v;
  }
  return part;
}

template <typename T>
Part whole(const T* x, std::int64_t count) {
  const std::int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<Part> parts(static_cast<std::size_t>(blocks));
#pragma omp parallel for schedule(static) if (blocks > 16)
  for (std::int64_t b = 0; b < blocks; ++b) {
    Part part = measure(x + b * kBlock, std::min(kBlock, count - b * kBlock));
    // Of 2^15 numbers this loses at most half of the digits of f64, and only where the mean dwarfs the spread.
    if (part.finite > 0)
      part.deviations = std::max(0.0, part.squares - part.sum * (part.sum / static_cast<double>(part.finite)));
    parts[static_cast<std::size_t>(b)] = part;
  }
  Part all;
  for (const Part& part : parts) all.join(part);
  return all;
}

}  // namespace

snapshot::TensorStatistics tensorSummary(const TensorView& view) {
  snapshot::TensorStatistics out;
  out.set_count(view.present() ? view.elements() : 0);
  if (!view.present() || view.dtype == DType::kString || !view.data) return out;
  Part all;
  dispatchFixed(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    all = whole(static_cast<const T*>(view.data), view.elements());
  });
  const auto n = static_cast<double>(std::max<std::int64_t>(1, all.finite));
  out.set_zeros(all.zeros);
  out.set_nan(all.nan);
  out.set_inf(all.inf);
  out.set_negative(all.negative);
  out.set_min(all.finite > 0 ? all.least : 0);
  out.set_max(all.finite > 0 ? all.most : 0);
  out.set_mean(all.finite > 0 ? all.sum / n : 0);
  out.set_std(std::sqrt(all.deviations / n));
  out.set_norm(std::sqrt(all.squares));
  return out;
}

}  // namespace stepscope
