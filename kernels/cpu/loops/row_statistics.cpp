#include "kernels/cpu/loops/row_statistics.h"

#include <cmath>

#include "kernels/cpu/loops/row_sums.h"
#include "kernels/cpu/loops/support.h"

namespace stepscope::cpu {
namespace {

SS_CLONES float sumOf(const float* x, std::int64_t n) {
  SumLanes sums[kSumChains] = {};
  std::int64_t i = 0;
  for (; i + kSumChains * kSumLanes <= n; i += kSumChains * kSumLanes)
    for (std::int64_t chain = 0; chain < kSumChains; ++chain) {
      SumLanes v;
      loadLanes(x + i + chain * kSumLanes, v);
      sums[chain] += v;
    }
  float sum = 0;
  for (; i < n; ++i) sum += x[i];
  return sum + sumOfLanes(sums);
}

struct Deviations {
  float sum = 0, squares = 0;
};
SS_CLONES Deviations deviationsOf(const float* x, float mean, std::int64_t n) {
  SumLanes sums[kSumChains] = {}, squares[kSumChains] = {};
  std::int64_t i = 0;
  for (; i + kSumChains * kSumLanes <= n; i += kSumChains * kSumLanes)
    for (std::int64_t chain = 0; chain < kSumChains; ++chain) {
      SumLanes d;
      loadLanes(x + i + chain * kSumLanes, d);
      d -= mean;
      sums[chain] += d;
      squares[chain] += d * d;
    }
  Deviations all;
  for (; i < n; ++i) {
    const float d = x[i] - mean;
    all.sum += d;
    all.squares += d * d;
  }
  return {all.sum + sumOfLanes(sums), all.squares + sumOfLanes(squares)};
}

}  // namespace

// The mean is found roughly, then corrected by the mean of the differences, which are small.
RowStatistics rowStatistics(const float* x, std::int64_t width, double epsilon, bool centred) {
  const auto count = static_cast<double>(width);
  double rough = 0, sum = 0, squares = 0;
  if (centred) {
    for (std::int64_t at = 0; at < width; at += kSumBlock)
      rough += static_cast<double>(sumOf(x + at, std::min(kSumBlock, width - at)));
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
