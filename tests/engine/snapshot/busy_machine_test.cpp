#include "engine/snapshot/busy_machine.h"

#include <gtest/gtest.h>

namespace stepscope {
namespace {

TEST(BusyMachine, IsOneWhereATenthOfTheProcessorTimeWasWaitedFor) {
  const ProcessorTimes quiet{95'000'000, 5'000'000, 50'000'000}, busy{24'000'000, 23'000'000, 23'400'000};
  EXPECT_FALSE(quiet.busy());
  EXPECT_EQ(busyText(quiet), "");
  EXPECT_FALSE(ProcessorTimes{}.busy()) << "nothing is known";
  EXPECT_TRUE(busy.busy());
  const std::string text = busyText(busy);
  for (const char* part : {"49 %", "computed 24.0 ms", "waited 23.0 ms", "in 23.4 ms by the clock"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(BusyMachine, TimeWithoutACoreIsWhatAThreadLostOnAverage) {
  const ProcessorTimes times{30, 40, 100};
  EXPECT_EQ(withoutCore(times, 1, 100), 40);
  EXPECT_EQ(withoutCore(times, 2, 100), 20);
  EXPECT_EQ(withoutCore(times, 2, 50), 10) << "one of two steps";
  EXPECT_EQ(withoutCore({30, 900, 100}, 2, 100), 100) << "never more than the time";
  EXPECT_EQ(withoutCore({}, 2, 100), 0);
  EXPECT_EQ(withoutCore(times, 0, 100), 40) << "a number of threads that a damaged file may have";
}

TEST(BusyMachine, PeaksAreDisturbedAboveATwentieth) {
  EXPECT_EQ(disturbedText(0.05), "");
  EXPECT_NE(disturbedText(0.7).find("no core for 70 % of the time"), std::string::npos);
}

}  // namespace
}  // namespace stepscope
