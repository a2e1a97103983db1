// The records that the fake CUPTI makes of what the fake GPU does: found by 64-bit ids, by a clock of their own, and a rung
// lower where CUPTI does not record.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "kernels/activity.h"
#include "kernels/cuda_device.h"
#include "tests/kernels/fake_gpu/use.h"
#include "tests/kernels/on_device.h"

namespace stepscope {
namespace {

class CuptiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("STEPSCOPE_CUPTI", SS_FAKE_CUPTI, 1);
    setenv("STEPSCOPE_FAKE_CUPTI", "", 1);
  }
  void TearDown() override { setenv("STEPSCOPE_CUPTI", "off", 1); }
};

std::vector<ActivityRecord> only(const Activity& activity, bool work) {
  std::vector<ActivityRecord> found;
  std::ranges::copy_if(activity.records, std::back_inserter(found),
                       [&](const ActivityRecord& record) { return isWork(record.kind) == work; });
  return found;
}
std::vector<ActivityRecord> of(const Activity& activity, ActivityKind kind) {
  std::vector<ActivityRecord> found;
  std::ranges::copy_if(activity.records, std::back_inserter(found),
                       [&](const ActivityRecord& record) { return record.kind == kind; });
  return found;
}

// Three kernels with a copy each way around them, as ids 1 to 3 of some 64-bit number, on a device of its own.
Activity activityOfThree(Device& device, std::uint64_t first) {
  const KernelSpec spec{
      "", "Tanh", {}, {{DType::kF32, {300}, false, {}, Layout::kPlain, Space::kDevice}}, {{DType::kF32, {300}}}};
  const auto kernel = builtInKernels().make("cuda", spec);
  const std::vector<Tensor> inputs{Tensor(DType::kF32, {300})};
  ActivitySource& source = *activityOf(device);
  source.startActivity(ActivityRung::kActivity);
  for (std::uint64_t i = 0; i < 3; ++i) {
    activityId = first + i;
    EXPECT_TRUE(runOn(device, **kernel, spec, inputs).has_value());
  }
  activityId = 0;
  EXPECT_TRUE(runOn(device, **kernel, spec, inputs).has_value());  // nobody's
  EXPECT_TRUE(device.synchronise().has_value());
  return source.takeActivity();
}

TEST_F(CuptiTest, RecordsHaveTheIdOfTheirWorkWhateverTheStream) {
  ASSERT_TRUE(useFakeGpu("seed=3"));
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value()) << device.error().message;
  constexpr std::uint64_t kFirst = (std::uint64_t{1} << 40) + 5;  // more than 32 bits
  for (int round = 0; round < 2; ++round) {
    const Activity activity = activityOfThree(**device, kFirst);
    EXPECT_EQ(activityOf(**device)->rung().name, "activity");
    EXPECT_EQ(activity.lost, 0);
    ASSERT_EQ(activity.clocks.size(), 2u);
    const std::vector<ActivityRecord> work = only(activity, true);
    ASSERT_EQ(work.size(), 12u);  // the input, the fill of the result, the kernel, the result
    std::set<std::uint64_t> correlations;
    int kernels = 0;
    for (const ActivityRecord& record : work) {
      EXPECT_GE(record.id, kFirst);
      EXPECT_LE(record.id, kFirst + 2);
      EXPECT_GE(record.begin, activity.clocks[0].device) << "not by the clock of CUPTI";
      EXPECT_LE(record.begin, record.end);
      EXPECT_LE(record.end, activity.clocks[1].device);
      EXPECT_TRUE(record.callsByDevice) << "not of the record of the call";
      EXPECT_LE(activity.clocks[0].device, record.called);
      EXPECT_LE(record.called, record.returned);
      EXPECT_LE(record.called, record.begin);
      EXPECT_STREQ(record.what, "");
      correlations.insert(record.correlation);
      if (record.kind != ActivityKind::kKernel) {
        EXPECT_EQ(record.bytes, 1200);
        continue;
      }
      ++kernels;
      ASSERT_GE(record.kernel, 0);
      const ActivityKernel& kernel = activity.kernels[static_cast<std::size_t>(record.kernel)];
      EXPECT_EQ(kernel.name, "elementwise");
      EXPECT_EQ(kernel.registers, 48);
      EXPECT_EQ(kernel.sharedBytes, 1024);
      EXPECT_EQ(kernel.occupancy, 0.5);
    }
    EXPECT_EQ(kernels, 3);
    EXPECT_EQ(correlations.size(), 12u);
  }
}

// A call by which a stream will wait has the id of who waits and the stream that does; the host waits for an event or for a
// stream, also when nobody's instruction waits.
TEST_F(CuptiTest, WaitsBelongToWhoWaited) {
  ASSERT_TRUE(useFakeGpu("seed=5"));
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value()) << device.error().message;
  ASSERT_TRUE((*device)->needStreams(2));
  auto memory = (*device)->allocate(64);
  const auto event = (*device)->makeEvent();
  ASSERT_TRUE(memory && event);
  activityOf(**device)->startActivity(ActivityRung::kActivity);
  activityId = 5;
  ASSERT_TRUE((*device)->fill(memory->data(), 1, 64, 1));
  ASSERT_TRUE((*device)->record(**event, 1));
  activityId = 6;
  ASSERT_TRUE((*device)->wait(0, **event));
  activityId = 7;
  ASSERT_TRUE((*device)->synchronise(**event));
  activityId = 0;
  ASSERT_TRUE((*device)->synchronise());
  *memory = {};  // waits for its streams
  const Activity activity = activityOf(**device)->takeActivity();
  EXPECT_EQ(activity.lost, 0);
  const auto streams = of(activity, ActivityKind::kStreamWait);
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].id, 6u);
  EXPECT_EQ(streams[0].stream, 0);
  EXPECT_STREQ(streams[0].what, "an event");
  auto host = of(activity, ActivityKind::kHostWait);
  std::ranges::sort(host, {}, &ActivityRecord::correlation);
  ASSERT_EQ(host.size(), 5u);
  EXPECT_EQ(host[0].id, 7u);
  EXPECT_EQ(host[0].stream, kNoStream);
  EXPECT_STREQ(host[0].what, "an event");
  for (std::size_t i = 1; i < host.size(); ++i) {
    EXPECT_EQ(host[i].id, 0u);
    EXPECT_EQ(host[i].stream, static_cast<StreamId>((i - 1) % 2));
    EXPECT_STREQ(host[i].what, "a stream");
  }
  for (const ActivityRecord& record : only(activity, false)) {
    EXPECT_GE(record.begin, activity.clocks[0].device) << "not by the clock of CUPTI";
    EXPECT_LE(record.begin, record.end);
    EXPECT_LE(record.end, activity.clocks[1].device);
    EXPECT_EQ(record.called, record.kind == ActivityKind::kOverhead ? 0 : record.begin);
  }
}

// A long copy waits for its pinned pieces: the wait is that of the instruction whose copy it is.
TEST_F(CuptiTest, ACopyThatWaitsForRoomSaysSo) {
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  constexpr std::int64_t kBytes = (std::int64_t{4} << 20) * 10;  // ten pieces, of which there are eight
  const std::vector<std::byte> from(static_cast<std::size_t>(kBytes));
  auto memory = (*device)->allocate(kBytes);
  ASSERT_TRUE(memory);
  activityOf(**device)->startActivity(ActivityRung::kActivity);
  activityId = 9;
  ASSERT_TRUE((*device)->copy(memory->data(), from.data(), kBytes, 0));
  activityId = 0;
  ASSERT_TRUE((*device)->synchronise());
  const Activity activity = activityOf(**device)->takeActivity();
  EXPECT_EQ(of(activity, ActivityKind::kCopyIn).size(), 10u);
  const auto waits = of(activity, ActivityKind::kHostWait);
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(std::ranges::count_if(waits, [](const auto& w) { return w.id == 9 && w.stream == kNoStream; }), 2);
}

TEST_F(CuptiTest, OverheadIsNobodys) {
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  const auto spent = [&](const char* order) {
    setenv("STEPSCOPE_FAKE_CUPTI", order, 1);
    std::multiset<std::string> found;
    for (const ActivityRecord& record : of(activityOfThree(**device, 1), ActivityKind::kOverhead)) {
      EXPECT_EQ(record.id, 0u);
      EXPECT_EQ(record.stream, kNoStream);
      EXPECT_LT(record.begin, record.end);
      found.insert(record.what);
    }
    return found;
  };
  EXPECT_EQ(spent("unload"), (std::multiset<std::string>{"a full buffer of commands", "loading a kernel"}));
  EXPECT_EQ(spent(""), std::multiset<std::string>()) << "a kernel is loaded once";
}

// What a CUPTI does not have is left out; without kernels or calls it tells nothing.
TEST_F(CuptiTest, KindsThatItRefusesAreLeftOut) {
  ASSERT_TRUE(useFakeGpu());
  for (const auto& [order, rung] : {std::pair("refuse=38", "activity"), std::pair("refuse=17", "activity"),
                                    std::pair("refuse=5", "activity"), std::pair("refuse=10", "events")}) {
    setenv("STEPSCOPE_FAKE_CUPTI", order, 1);
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    const Activity activity = activityOfThree(**device, 1);
    EXPECT_EQ(activityOf(**device)->rung().name, rung) << order;
    EXPECT_EQ(only(activity, true).size(), 12u) << order;
    EXPECT_EQ(of(activity, ActivityKind::kHostWait).empty(),
              order == std::string("refuse=38") || rung == std::string("events"))
        << order;
  }
}

TEST_F(CuptiTest, DroppedRecordsAreCounted) {
  setenv("STEPSCOPE_FAKE_CUPTI", "drop=2", 1);
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  const Activity activity = activityOfThree(**device, 1);
  EXPECT_GE(activity.lost, 1);
  EXPECT_LE(activity.lost, 2);
  EXPECT_EQ(activityOf(**device)->lostActivity(), activity.lost);
}

TEST_F(CuptiTest, WhereItDoesNotRecordEventsTell) {
  ASSERT_TRUE(useFakeGpu());
  for (const auto& [library, order, reason] : {std::tuple(SS_FAKE_CUPTI, "refuse", "CUPTI does not record"),
                                               std::tuple("/nowhere/libcupti.so", "", "no CUPTI on this"),
                                               std::tuple("libm.so.6", "", "CUPTI has no cuptiGetVersion")}) {
    setenv("STEPSCOPE_CUPTI", library, 1);
    setenv("STEPSCOPE_FAKE_CUPTI", order, 1);
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    EXPECT_EQ(activityOfThree(**device, 1).records.size(), 12u) << library << ": events tell of no waits";
    EXPECT_EQ(activityOf(**device)->rung().name, "events");
    EXPECT_NE(activityOf(**device)->rung().reason.find(reason), std::string::npos) << activityOf(**device)->rung().reason;
  }
}

// CUPTI is one per process: the second device that records at the same time takes events.
TEST_F(CuptiTest, OneDeviceRecordsAtATime) {
  ASSERT_TRUE(useFakeGpu());
  const auto first = makeCudaDevice("cuda"), second = makeCudaDevice("cuda:0");
  ASSERT_TRUE(first.has_value() && second.has_value());
  activityOf(**first)->startActivity(ActivityRung::kActivity);
  activityOf(**second)->startActivity(ActivityRung::kActivity);
  EXPECT_EQ(activityOf(**first)->rung().name, "activity");
  EXPECT_EQ(activityOf(**second)->rung().name, "events");
  activityOf(**first)->takeActivity();
  activityOf(**second)->takeActivity();
}

}  // namespace
}  // namespace stepscope
