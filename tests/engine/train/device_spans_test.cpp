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
    if (record.kind() >= snapshot::DeviceRecord::STREAM_WAIT) continue;
    EXPECT_LE(before, record.called_ns()) << "in the order of the calls";
    before = record.called_ns();
    EXPECT_LE(record.called_ns(), record.returned_ns());
    EXPECT_LE(record.returned_ns(), record.begin_ns() + 50'000) << "a kernel ran before it was asked for";
    EXPECT_LE(record.begin_ns(), record.end_ns());
    const auto& instruction = plan->instructions(record.instruction());
    EXPECT_EQ(record.stream(), instruction.stream());
    EXPECT_EQ(record.what(), "");
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

// A wait has the instruction that waited, or that somebody waited for; the wait for the end of the step is nobody's, and so
// is what handing over the records took. They are by the clock of the host, and change no span. Records come in another
// order with each seed.
TEST(DeviceSpans, ComeWithWaitsAndOverhead) {
  for (const char* device : {"emulated:seed=26", "emulated:seed=27"}) {
    auto session = openSession(testing::digits(), {{"device", device}, {"record", "instructions"}});
    ASSERT_TRUE(session && session->step());
    const auto step = session->step();
    ASSERT_TRUE(step.has_value());
    const auto plan = session->planSnapshot();
    int streams = 0, host = 0, ends = 0, overheads = 0;
    constexpr std::int64_t kSlack = 50'000;
    for (const auto& record : step->device().records()) {
      if (record.kind() < snapshot::DeviceRecord::STREAM_WAIT) {
        EXPECT_EQ(overheads, 0) << "what no call asked for comes last";
        continue;
      }
      EXPECT_LE(record.begin_ns(), record.end_ns());
      EXPECT_GE(record.begin_ns(), step->begin_ns() - kSlack) << device;
      EXPECT_LE(record.end_ns(), step->begin_ns() + step->ns() + kSlack) << device;
      EXPECT_NE(record.what(), "");
      EXPECT_EQ(record.kernel(), -1);
      if (record.kind() == snapshot::DeviceRecord::OVERHEAD) {
        ++overheads;
        EXPECT_EQ(record.instruction(), -1);
      } else if (record.instruction() < 0) {
        ++ends;
        EXPECT_EQ(record.kind(), snapshot::DeviceRecord::HOST_WAIT);
        EXPECT_EQ(record.what(), "all streams");
      } else {
        const auto& instruction = plan->instructions(record.instruction());
        const bool onStream = record.kind() == snapshot::DeviceRecord::STREAM_WAIT;
        ++(onStream ? streams : host);
        EXPECT_EQ(record.stream(), onStream ? instruction.stream() : kNoStream);
        // Somebody who looks at what an instruction has computed waits for everything.
        if (!onStream && record.what() == "all streams") continue;
        EXPECT_GT(instruction.waits_size(), 0) << record.instruction();
        EXPECT_EQ(record.what(), "an event");
      }
    }
    EXPECT_GT(streams, 0);
    EXPECT_GT(host + ends, 0);
    EXPECT_GE(ends, 1);
    EXPECT_GE(overheads, 1);
  }
}

// What the option asks for is what a step has, and it can be changed between two steps. Counting changes no result.
TEST(DeviceSpans, ComeByTheRungThatIsAskedFor) {
  std::map<std::string, double> losses;
  for (const char* rung : {"activity", "counters", "events", "host"}) {
    auto session = openSession(testing::digits(), {{"device", "emulated:seed=33"}, {"record.rung", rung}});
    ASSERT_TRUE(session);
    const auto step = session->step();
    ASSERT_TRUE(step.has_value());
    losses[rung] = step->loss();
    const snapshot::DeviceWork& work = step->device();
    EXPECT_EQ(work.rung(), rung);
    EXPECT_EQ(work.rung_reason(), "");
    int kernels = 0, counted = 0, beside = 0;
    for (const auto& record : work.records()) {
      kernels += record.kind() == snapshot::DeviceRecord::KERNEL ? 1 : 0;
      counted += record.has_counters() ? 1 : 0;
      beside += record.kind() >= snapshot::DeviceRecord::STREAM_WAIT ? 1 : 0;
      EXPECT_TRUE(!record.has_counters() || record.kind() == snapshot::DeviceRecord::KERNEL);
    }
    EXPECT_EQ(kernels > 10, std::string(rung) != "host") << rung;
    EXPECT_EQ(counted, std::string(rung) == "counters" ? kernels : 0) << rung;
    EXPECT_EQ(beside > 0, std::string(rung) == "activity" || std::string(rung) == "counters") << rung;
    EXPECT_EQ(work.counted().empty(), std::string(rung) != "counters");
    EXPECT_GT(step->spans_size(), 0);
  }
  for (const auto& [rung, loss] : losses) EXPECT_EQ(loss, losses["host"]) << rung;
}

// Every kernel stores something, and the same step moves the same bytes.
TEST(DeviceSpans, CountTheBytesThatKernelsMove) {
  auto session = openSession(testing::digits(), {{"device", "emulated:seed=34"}, {"record.rung", "counters"}});
  ASSERT_TRUE(session);
  const auto step = session->step();
  ASSERT_TRUE(step.has_value());
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> moved;
  for (const auto& record : step->device().records()) {
    if (!record.has_counters()) continue;
    EXPECT_FALSE(record.counters().has_occupancy()) << "the emulator has no clock of cycles";
    EXPECT_FALSE(record.counters().has_tensor());
    moved[record.instruction()].first += record.counters().read_bytes();
    moved[record.instruction()].second += record.counters().written_bytes();
  }
  for (const auto& [number, bytes] : moved) EXPECT_GT(bytes.second, 0) << number;
  EXPECT_GT(moved.size(), 10u);
  const auto again = session->step();
  ASSERT_TRUE(again.has_value());
  std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>> second;
  for (const auto& record : again->device().records())
    if (record.has_counters()) {
      second[record.instruction()].first += record.counters().read_bytes();
      second[record.instruction()].second += record.counters().written_bytes();
    }
  EXPECT_EQ(second, moved) << "the same step moves the same bytes";
}

// A step that is walked has records of its own, each instruction's once however often it was run; never those of the step
// before.
TEST(DeviceSpans, OfAWalkedStepAreItsOwn) {
  auto session = openSession(testing::digits(), {{"device", "emulated:seed=35"}, {"record", "instructions"}});
  ASSERT_TRUE(session);
  const auto whole = session->step();
  ASSERT_TRUE(whole.has_value());
  const auto kernels = [](const snapshot::StepRecord& step) {
    std::map<std::int32_t, int> found;
    for (const auto& record : step.device().records())
      if (record.kind() == snapshot::DeviceRecord::KERNEL) ++found[record.instruction()];
    return found;
  };
  ASSERT_TRUE(session->beginStep());
  ASSERT_TRUE(session->runTo(9));
  ASSERT_TRUE(session->runTo(4));
  ASSERT_TRUE(session->runTo(12));
  const auto walked = session->finishStep();
  ASSERT_TRUE(walked.has_value());
  EXPECT_EQ(kernels(*walked), kernels(*whole));
  for (const auto& record : walked->device().records())
    EXPECT_GE(record.begin_ns(), whole->begin_ns() + whole->ns() - 50'000) << "of the step before";
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

// What instructions are compared with is what their device can do, not what the processor can.
TEST(DeviceRoofs, AreThoseOfTheDevice) {
  auto session = openSession(testing::digits(), {{"device", "emulated:seed=28"}, {"roofline", "on"}});
  ASSERT_TRUE(session && session->step());
  const auto plan = session->planSnapshot();
  EXPECT_EQ(plan->peak().threads(), 0);
  ASSERT_EQ(plan->peak().levels_size(), 1);
  EXPECT_EQ(plan->peak().levels(0).name(), "memory");
  auto onCpu = openSession(testing::digits(), {{"roofline", "on"}});
  ASSERT_TRUE(onCpu && onCpu->step());
  const auto other = onCpu->planSnapshot();
  EXPECT_GT(other->peak().threads(), 0);
  EXPECT_LT(plan->peak().operations_per_second(), other->peak().operations_per_second() / 10) << "fibres are slow";
  EXPECT_LT(plan->peak().levels(0).bytes_per_second(),
            other->peak().levels(other->peak().levels_size() - 1).bytes_per_second());
  const auto roofs = [](const auto& of) {
    double ns = 0;
    for (const auto& instruction : of->instructions()) ns += instruction.roof().ns();
    return ns;
  };
  EXPECT_GT(roofs(plan), 10 * roofs(other));
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
