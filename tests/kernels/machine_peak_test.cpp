// What the machine can do is measured, not assumed; no test says how much that is.
#include "kernels/cpu/loops/machine_peak.h"

#include <gtest/gtest.h>
#include <omp.h>

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

TEST(MachinePeak, EveryKindOfTrafficMoves) {
  for (const Traffic traffic : {Traffic::kSum, Traffic::kTriad, Traffic::kUpdate, Traffic::kCopy})
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1000}, std::int64_t{1} << 20})
      EXPECT_GT(trafficPeak(bytes, traffic, 2, 0), 0);
}

}  // namespace
}  // namespace stepscope::cpu
