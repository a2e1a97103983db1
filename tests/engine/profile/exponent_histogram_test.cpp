#include "engine/profile/exponent_histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace stepscope {
namespace {

template <typename T>
ExponentHistogram histogramOf(const std::vector<T>& values) {
  const Tensor tensor = Tensor::of<T>({static_cast<std::int64_t>(values.size())}, values);
  ExponentHistogram histogram;
  histogram.add(tensor.view());
  return histogram;
}

TEST(ExponentHistogram, CountsAKnownTensor) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const ExponentHistogram h =
      histogramOf<float>({0, -0.f, 1, -1.5f, 1.999f, 2, 3, 0.5f, -0.75f, 0x1p-149f, 0x1p-126f, 3e38f, inf, -inf, nan});
  EXPECT_EQ(h.elements, 15);
  EXPECT_EQ(h.zeros, 2);
  EXPECT_EQ(h.notFinite, 3);
  EXPECT_EQ(h.nearOverflow, 1);
  EXPECT_EQ(h.subnormal, 1);
  EXPECT_EQ(h.exponent(0), 3) << "1, -1.5, 1.999";
  EXPECT_EQ(h.exponent(1), 2) << "2, 3";
  EXPECT_EQ(h.exponent(-1), 2);
  EXPECT_EQ(h.exponent(-149), 1);
  EXPECT_EQ(h.exponent(-126), 1);
  EXPECT_EQ(h.exponent(127), 1);
  EXPECT_EQ(std::accumulate(h.byExponent.begin(), h.byExponent.end(), std::int64_t{0}), 10);
}

TEST(ExponentHistogram, KnowsTheLimitsOfEachType) {
  const ExponentHistogram half = histogramOf<Float16>({65504.f, 32752.f, 32736.f, 0x1p-14f, 0x1p-15f, 0x1p-24f});
  EXPECT_EQ(half.nearOverflow, 2);
  EXPECT_EQ(half.subnormal, 2);
  EXPECT_EQ(half.exponent(15), 1);
  EXPECT_EQ(half.exponent(14), 2);
  EXPECT_EQ(half.exponent(-24), 1);
  const ExponentHistogram brain = histogramOf<BFloat16>({65504.f, 3e38f, 0x1p-126f, 0x1p-133f});
  EXPECT_EQ(brain.nearOverflow, 1);
  EXPECT_EQ(brain.subnormal, 1);
  const ExponentHistogram wide = histogramOf<double>({1e300, 1e308, 5e-324});
  EXPECT_EQ(wide.nearOverflow, 1);
  EXPECT_EQ(wide.subnormal, 1);
  EXPECT_EQ(wide.exponent(ExponentHistogram::kLowest), 1);
}

TEST(ExponentHistogram, LeavesOutWhatIsNoFloatingNumber) {
  const ExponentHistogram h = histogramOf<std::int32_t>({1, 2, 3});
  EXPECT_EQ(h.elements, 0);
  EXPECT_EQ(h.exponent(0), 0);
}

}  // namespace
}  // namespace stepscope
