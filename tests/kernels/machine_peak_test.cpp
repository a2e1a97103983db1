// What the machine can do is measured, not assumed; no test says how much that is.
#include "kernels/cpu/loops/machine_peak.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "kernels/cpu/linear/bfloat16_products.h"

namespace stepscope::cpu {
namespace {

TEST(MachinePeak, HasArithmeticAndLevelsFastestFirst) {
  const int before = omp_get_max_threads();
  const MachinePeak& peak = machinePeak(1);
  EXPECT_EQ(peak.threads, 1);
  EXPECT_GT(peak.operationsPerSecond, 0);
  EXPECT_GT(peak.ns, 0);
  ASSERT_GE(peak.levels.size(), 2u);
  EXPECT_EQ(peak.levels.back().name, "memory");
  EXPECT_EQ(peak.levels.back().capacity, 0);
  for (std::size_t i = 0; i + 1 < peak.levels.size(); ++i) {
    EXPECT_GE(peak.levels[i].bytesPerSecond, peak.levels[i + 1].bytesPerSecond) << peak.levels[i].name;
    EXPECT_GT(peak.levels[i].capacity, 0) << peak.levels[i].name;
    EXPECT_LE(peak.levels[i].workingSet, peak.levels[i].capacity) << peak.levels[i].name;
    EXPECT_GT(peak.levels.back().workingSet, peak.levels[i].workingSet)
        << "memory is measured beyond " << peak.levels[i].name;
  }
  EXPECT_GT(peak.levels.back().bytesPerSecond, 0);
  EXPECT_EQ(omp_get_max_threads(), before) << "the number of threads is given back";
}

TEST(MachinePeak, IsMeasuredOncePerThreadCount) {
  const MachinePeak& first = machinePeak(1);
  const MachinePeak& again = machinePeak(1);
  EXPECT_EQ(&first, &again);
  EXPECT_NE(&first, &machinePeak(2));
  EXPECT_EQ(machinePeak(2).threads, 2);
}

// A product of a low type has a peak of its own where a kernel computes in it; else it runs at that of float32.
TEST(MachinePeak, OfALowTypeIsThatOfItsKernels) {
  EXPECT_EQ(operationsPeak(1, 0, DType::kF16), 0) << "products of float16 are computed in float32";
  MachinePeak peak;
  peak.operationsPerSecond = 1e9;
  EXPECT_EQ(peak.operationsIn(DType::kBF16), 1e9);
  peak.bfloat16PerSecond = 2e9;
  EXPECT_EQ(peak.operationsIn(DType::kBF16), 2e9);
  EXPECT_EQ(peak.operationsIn(DType::kF16), 1e9);
  EXPECT_EQ(machinePeak(1).bfloat16PerSecond > 0, operationsPeak(1, 0, DType::kBF16) > 0);
}

// bfloat16 is multiplied as such only where that is not slower than float32 with its casts.
TEST(MachinePeak, ProductsOfBFloat16AreNotSlowerThanThoseOfFloat32) {
  const double low = operationsPeak(1, 0.02, DType::kBF16);
  EXPECT_EQ(low > 0, multipliesBFloat16());
  if (low > 0) EXPECT_GT(low, 0.5 * operationsPeak(1, 0.02));
}

TEST(MachinePeak, EveryKindOfTrafficMoves) {
  for (const Traffic traffic : {Traffic::kSum, Traffic::kTriad, Traffic::kUpdate, Traffic::kCopy})
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1000}, std::int64_t{1} << 20})
      EXPECT_GT(trafficPeak(bytes, traffic, 2, 0), 0);
}

}  // namespace
}  // namespace stepscope::cpu
