// What a step tells of the times of its instructions on a device: those of the device's own records, in a row per stream, by
// the clock of the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/activity.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using testing::openSession;

struct Times {
  int onDevice = 0, within = 0, overlapping = 0;
  std::int64_t device = 0, host = 0;  // ns
};

// The spans of a step of `digits` on the device.
Times timesOf(const std::string& device) {
  auto session = openSession(testing::digits(), {{"device", device}, {"record", "instructions"}});
  Times times;
  if (!session || !session->step()) return times;
  const auto step = session->step();
  EXPECT_TRUE(step.has_value());
  if (!step) return times;
  const auto plan = session->planSnapshot();
  std::vector<std::tuple<int, std::int64_t, std::int64_t>> onStream;  // stream, begin, end
  for (const auto& span : step->spans()) {
    const auto& instruction = plan->instructions(span.instruction());
    if (instruction.view() || !instruction.on_host().empty()) {
      EXPECT_EQ(span.thread(), 0);
      continue;
    }
    EXPECT_GE(span.thread(), 1);
    ++times.onDevice;
    times.device += span.end_ns() - span.begin_ns();
    // The fit leaves a few microseconds.
    constexpr std::int64_t kSlack = 50'000;
    if (span.begin_ns() >= step->begin_ns() - kSlack && span.end_ns() <= step->begin_ns() + step->ns() + kSlack)
      ++times.within;
    onStream.emplace_back(span.thread(), span.begin_ns(), span.end_ns());
  }
  std::ranges::sort(onStream);
  // Kernels of one instruction may have a copy of another stream between them.
  for (std::size_t i = 1; i < onStream.size(); ++i) {
    const auto& [before, from, until] = onStream[i - 1];
    const auto& [stream, begin, end] = onStream[i];
    times.overlapping += stream == before && begin < until ? 1 : 0;
  }
  return times;
}

// Streams run when somebody waits, so by the time that the host takes to issue them kernels would take next to nothing. The
// seeds have clocks that differ by days, and hand the records over in other orders.
TEST(DeviceSpans, AreTheTimesOfTheDeviceWhateverItsClock) {
  for (const char* device : {"emulated:seed=21", "emulated:seed=22", "emulated:seed=23"}) {
    const Times times = timesOf(device);
    EXPECT_GT(times.onDevice, 10) << device;
    EXPECT_EQ(times.within, times.onDevice) << device;
    EXPECT_EQ(times.overlapping, 0) << device << ": a stream runs one kernel at a time";
    EXPECT_GT(times.device, 0) << device;
  }
}

// Each kernel, copy and fill with the call that asked for it, by the clock of the host.
TEST(DeviceSpans, ComeWithTheCallsAndWhatKernelsTake) {
  auto session = openSession(testing::digits(), {{"device", "emulated:seed=25"}, {"record", "instructions"}});
  ASSERT_TRUE(session && session->step());
  const auto step = session->step();
  ASSERT_TRUE(step.has_value());
  const snapshot::DeviceWork& work = step->device();
  EXPECT_EQ(work.rung(), "activity");
  EXPECT_EQ(work.lost(), 0);
  const auto plan = session->planSnapshot();
  std::map<snapshot::DeviceRecord::Kind, int> kinds;
  std::int64_t before = 0;
  for (const auto& record : work.records()) {
    ++kinds[record.kind()];
    EXPECT_LE(before, record.called_ns()) << "in the order of the calls";
    before = record.called_ns();
    EXPECT_LE(record.called_ns(), record.returned_ns());
    EXPECT_LE(record.returned_ns(), record.begin_ns() + 50'000) << "a kernel ran before it was asked for";
    EXPECT_LE(record.begin_ns(), record.end_ns());
    const auto& instruction = plan->instructions(record.instruction());
    EXPECT_EQ(record.stream(), instruction.stream());
    if (record.kind() != snapshot::DeviceRecord::KERNEL) {
      EXPECT_GT(record.bytes(), 0);
      continue;
    }
    ASSERT_GE(record.kernel(), 0);
    ASSERT_LT(record.kernel(), work.kernels_size());
    const auto& kernel = work.kernels(record.kernel());
    EXPECT_FALSE(kernel.name().empty());
    EXPECT_GT(kernel.blocks(), 0);
    EXPECT_GT(kernel.threads(), 0);
    EXPECT_GT(kernel.occupancy(), 0);
    EXPECT_LE(kernel.occupancy(), 1);
  }
  EXPECT_GT(kinds[snapshot::DeviceRecord::KERNEL], 10);
  EXPECT_GT(kinds[snapshot::DeviceRecord::COPY_IN], 0);
  EXPECT_GT(kinds[snapshot::DeviceRecord::COPY_OUT], 0);
}

TEST(DeviceSpans, CountTheRecordsThatWereLost) {
  const Times times = timesOf("emulated:seed=24,drop-records=3");
  EXPECT_GT(times.onDevice, 10);
  const auto device = findDevice("emulated:seed=24,drop-records=3");
  ASSERT_TRUE(device.has_value());
  ASSERT_NE(activityOf(**device), nullptr);
  EXPECT_GT(activityOf(**device)->lostActivity(), 3);
  const auto whole = findDevice("emulated:seed=21");
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(activityOf(**whole)->lostActivity(), 0);
}

TEST(DeviceSpans, OfTheCpuAreThoseOfTheHost) {
  EXPECT_EQ(activityOf(cpuDevice()), nullptr);
  auto session = openSession(testing::digits(), {{"record", "instructions"}});
  ASSERT_TRUE(session);
  const auto step = session->step();
  ASSERT_TRUE(step.has_value());
  for (const auto& span : step->spans()) EXPECT_EQ(span.thread(), 0);
}

}  // namespace
}  // namespace stepscope
