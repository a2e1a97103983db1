#include "kernels/cpu/loops/row_statistics.h"

#include <cmath>

#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

SS_CLONES float sumOf(const float* x, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < n; ++j) sum += x[j];
  return sum;
}

struct Deviations {
  float sum = 0, squares = 0;
};
SS_CLONES Deviations deviationsOf(const float* x, float mean, std::int64_t n) {
  float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum, squares)
  for (std::int64_t j = 0; j < n; ++j) {
    const float d = x[j] - mean;
    sum += d;
    squares += d * d;
  }
  return {sum, squares};
}

}  // namespace

// The mean is found roughly, then corrected by the mean of the differences, which are small.
RowStatistics rowStatistics(const float* x, std::int64_t width, double epsilon, bool centred) {
  const auto count = static_cast<double>(width);
  double rough = 0, sum = 0, squares = 0;
  if (centred) {
    for (std::int64_t at = 0; at < width; at += kSumBlock) rough += static_cast<double>(sumOf(x + at, std::min(kSumBlock, width - at)));
    rough /= count;
  }
  const auto mean = static_cast<float>(rough);
  for (std::int64_t at = 0; at < width; at += kSumBlock) {
    const Deviations d = deviationsOf(x + at, mean, std::min(kSumBlock, width - at));
    sum += static_cast<double>(d.sum);
    squares += static_cast<double>(d.squares);
  }
  const double rest = centred ? sum / count : 0;
  return {mean, rest, 1 / std::sqrt(std::max(squares / count - rest * rest, 0.0) + epsilon)};
}

}  // namespace stepscope::cpu
