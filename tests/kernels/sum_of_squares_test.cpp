// Sums of squares: as a plain loop in long double has them, whatever the type, the length and the number of threads.
#include "kernels/cpu/loops/sum_of_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/dispatch.h"

namespace stepscope::cpu {
namespace {

class SumOfSquares : public testing::TestWithParam<DType> {};

TEST_P(SumOfSquares, IsThatOfAPlainLoopAndTheSameBitsForAnyNumberOfThreads) {
  for (const std::int64_t count : {0, 1, 7, 16383, 16384, 16385, 200'001}) {
    const Tensor tensor(GetParam(), {count});
    long double expected = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      storeElement(tensor.view(), i, 0.01 * static_cast<double>((i * 7919) % 1000 - 500));
      const long double x = elementAsDouble(tensor.view(), i);
      expected += x * x;
    }
    const double found = sumOfSquares(tensor.view(), 1);
    EXPECT_NEAR(found, static_cast<double>(expected), 1e-12 * static_cast<double>(expected)) << count;
    for (const int threads : {2, 3, 8}) EXPECT_EQ(sumOfSquares(tensor.view(), threads), found) << count << ", " << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SumOfSquares, testing::Values(DType::kF32, DType::kF64, DType::kF16, DType::kBF16));

TEST(SumOfSquaresOf, LargeNumbersIsFiniteAndOfWhatIsNotFiniteIsNot) {
  const Tensor tensor(DType::kF32, {3});
  for (const double last : {3e38, double{INFINITY}, std::nan("")}) {
    for (std::int64_t i = 0; i < 3; ++i) storeElement(tensor.view(), i, i < 2 ? 3e38 : last);
    EXPECT_EQ(std::isfinite(sumOfSquares(tensor.view(), 1)), std::isfinite(last)) << last;
  }
  const Tensor whole(DType::kI32, {3});
  EXPECT_EQ(sumOfSquares(whole.view(), 1), 0);
  EXPECT_EQ(sumOfSquares({}, 1), 0);
}

}  // namespace
}  // namespace stepscope::cpu
