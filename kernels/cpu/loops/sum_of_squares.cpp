#include "kernels/cpu/loops/sum_of_squares.h"

#include <numeric>
#include <vector>

#include "kernels/cpu/loops/loops.h"
#include "kernels/cpu/loops/support.h"
#include "kernels/dispatch.h"

namespace stepscope::cpu {
namespace {

constexpr std::int64_t kBlock = 1 << 14;  // elements that are one sum, whoever computes it

constexpr std::int64_t kLanes = 32;  // sums at a time: an addition need not wait for the one before

template <typename T>
SS_CLONES double squares(const T* x, std::int64_t count) {
  double lanes[kLanes] = {};
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const double value = static_cast<double>(x[i + l]);
      lanes[l] += value * value;
    }
  }
  for (std::int64_t i = whole; i < count; ++i) lanes[i - whole] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

double sumOfSquares(const TensorView& view, int threads) {
  if (!view.present() || !view.data || !isFloating(view.dtype)) return 0;
  const std::int64_t count = view.elements(), blocks = (count + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<std::size_t>(blocks));
  dispatchFloat(view.dtype, [&](auto tag) {
    const auto* data = static_cast<const decltype(tag)*>(view.data);
    parallelRows(blocks, kBlock, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b)
        sums[static_cast<std::size_t>(b)] = squares(data + b * kBlock, std::min(kBlock, count - b * kBlock));
    });
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace stepscope::cpu
