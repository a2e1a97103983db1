// Records of a device on the clock of the host.
#include "engine/exec/device_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stepscope {
namespace {

// A clock with another beginning, and a rate that is off.
std::int64_t deviceClock(std::int64_t host, double skew) {
  return 987'654'321'000'000 + static_cast<std::int64_t>((1 + skew) * static_cast<double>(host));
}

TEST(ClockFit, FindsOffsetAndRate) {
  for (const double skew : {-2e-4, 0.0, 1e-5, 2e-4}) {
    std::vector<ClockPair> pairs;
    for (std::int64_t host = 5'000'000'000; host < 5'100'000'000; host += 9'000'000)
      pairs.push_back({deviceClock(host, skew), host});
    const ClockFit fit = fitClocks(pairs);
    EXPECT_LE(fit.residual, 2) << skew;
    for (const std::int64_t host : {5'000'000'000, 5'050'123'456, 5'120'000'000})
      EXPECT_NEAR(static_cast<double>(fit.host(deviceClock(host, skew))), static_cast<double>(host), 3) << skew;
  }
}

// Readings that were held up on the way spread around the line; the fit is between them, and says how far they are.
TEST(ClockFit, IsBetweenReadingsThatDiffer) {
  std::mt19937 random(3);
  std::vector<ClockPair> pairs;
  for (int i = 0; i < 200; ++i) {
    const std::int64_t host = 1'000'000'000 + i * 1'000'000;
    pairs.push_back({deviceClock(host, 1e-4) + static_cast<std::int64_t>(random() % 2001) - 1000, host});
  }
  const ClockFit fit = fitClocks(pairs);
  EXPECT_GT(fit.residual, 500);
  EXPECT_NEAR(static_cast<double>(fit.host(deviceClock(1'100'000'000, 1e-4))), 1.1e9, 200);
}

TEST(ClockFit, OfOnePairIsTheOffsetAndOfNoneTheHost) {
  const ClockPair one[] = {{700, 1700}};
  EXPECT_EQ(fitClocks(one).host(750), 1750);
  EXPECT_EQ(fitClocks({}).host(750), 750);
}

// Waits and overhead change no span. Calls of the device's clock get the host's, others have it; what no call asked for
// comes last.
TEST(DeviceTimes, WaitsAndOverheadAreOnTheHostsClockAndChangeNoSpan) {
  std::vector<Span> spans{{3, 10, 11}};
  Activity activity;
  activity.clocks = {{0, 1000}, {1000, 2000}};
  activity.records.resize(4);
  activity.records[0] = {.begin = 900, .end = 950, .kind = ActivityKind::kOverhead};
  activity.records[1] = {.begin = 600, .end = 700, .kind = ActivityKind::kOverhead};
  activity.records[2] = {.id = 4,
                         .begin = 10,
                         .end = 500,
                         .kind = ActivityKind::kHostWait,
                         .correlation = 9,
                         .called = 5,
                         .returned = 505,
                         .callsByDevice = true};
  activity.records[3] = {.id = 4, .begin = 100, .end = 150, .correlation = 8, .called = 1090, .returned = 1095};
  placeOnHostClock(activity, spans);
  EXPECT_EQ(spans[0].begin, 1100);
  EXPECT_EQ(spans[0].end, 1150);
  EXPECT_EQ(activity.records[0].called, 1090);
  EXPECT_EQ(activity.records[1].called, 1005);
  EXPECT_EQ(activity.records[1].returned, 1505);
  EXPECT_EQ(activity.records[1].begin, 1010);
  EXPECT_EQ(activity.records[2].begin, 1600);
  EXPECT_EQ(activity.records[3].begin, 1900);
}

// Two kernels of an instruction become one span; what has no record, and records of nobody, change nothing.
TEST(DeviceTimes, GoToTheInstructionsThatPutTheWorkThere) {
  std::vector<Span> spans{{3, 10, 11}, {4, 11, 12}, {6, 12, 13}};
  Activity activity;
  activity.clocks = {{0, 1000}, {1000, 2000}};
  activity.records = {{7, 0, 500, 540}, {4, 0, 120, 150}, {0, 0, 1, 2}, {4, 0, 100, 110}, {99, 0, 5, 6}, {1, 1, 5, 6}};
  placeOnHostClock(activity, spans);
  EXPECT_EQ(spans[0].begin, 1100);
  EXPECT_EQ(spans[0].end, 1150);
  EXPECT_EQ(spans[1].begin, 11);
  EXPECT_EQ(spans[1].end, 12);
  EXPECT_EQ(spans[2].begin, 1500);
  EXPECT_EQ(spans[2].end, 1540);
}

}  // namespace
}  // namespace stepscope
