// What the hardware counts of kernels, by the fake CUPTI's range profiler: each kernel has its own numbers, and what cannot
// be had is a rung lower with the reason.
#include <gtest/gtest.h>

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

class CountersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("STEPSCOPE_CUPTI", SS_FAKE_CUPTI, 1);
    order("");
    setenv("STEPSCOPE_FAKE_CUPTI", "", 1);
  }
  void TearDown() override {
    setenv("STEPSCOPE_CUPTI", "off", 1);
    order("");
  }
  static void order(const char* faults) { setenv("STEPSCOPE_FAKE_COUNTERS", faults, 1); }
};

KernelSpec tanhOf(std::int64_t elements) {
  return {
      "", "Tanh", {}, {{DType::kF32, {elements}, false, {}, Layout::kPlain, Space::kDevice}}, {{DType::kF32, {elements}}}};
}

// A kernel of each size as ids 1, 2, …, and one that is nobody's.
Activity activityOf(Device& device, const std::vector<std::int64_t>& sizes) {
  ActivitySource& source = *stepscope::activityOf(device);
  source.startActivity(ActivityRung::kCounters);
  for (std::size_t i = 0; i <= sizes.size(); ++i) {
    const bool nobodys = i == sizes.size();
    const KernelSpec spec = tanhOf(nobodys ? 64 : sizes[i]);
    const auto kernel = builtInKernels().make("cuda", spec);
    activityId = nobodys ? 0 : i + 1;
    EXPECT_TRUE(runOn(device, **kernel, spec, {Tensor(DType::kF32, spec.inputs[0].dims)}).has_value());
  }
  activityId = 0;
  EXPECT_TRUE(device.synchronise().has_value());
  return source.takeActivity();
}

// By what the fake CUPTI counts of a launch (fake_gpu/cupti_ranges.cpp).
void expectCounted(const Activity& activity, const ActivityRecord& record) {
  ASSERT_GE(record.counters, 0) << "record " << record.id;
  ASSERT_LT(record.counters, static_cast<std::int32_t>(activity.counters.size()));
  const KernelCounters& counted = activity.counters[static_cast<std::size_t>(record.counters)];
  const ActivityKernel& kernel = activity.kernels[static_cast<std::size_t>(record.kernel)];
  EXPECT_EQ(counted.readBytes, 1000 * kernel.blocks + kernel.threads) << record.id;
  EXPECT_EQ(counted.writtenBytes, 10 * kernel.blocks + 1) << record.id;
}

TEST_F(CountersTest, EachKernelHasItsOwn) {
  ASSERT_TRUE(useFakeGpu("seed=3"));
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value()) << device.error().message;
  for (int round = 0; round < 2; ++round) {
    const Activity activity = activityOf(**device, {300, 5000, 70000});
    EXPECT_EQ(stepscope::activityOf(**device)->rung().name, "counters");
    EXPECT_EQ(stepscope::activityOf(**device)->rung().reason, "");
    EXPECT_EQ(activity.counted, "bytes between the memory of the GPU and its caches");
    EXPECT_EQ(activity.uncounted, 0);
    EXPECT_EQ(activity.lost, 0);
    std::set<std::int32_t> places;
    std::set<std::int64_t> read;
    for (const ActivityRecord& record : activity.records) {
      if (record.kind != ActivityKind::kKernel) {
        EXPECT_EQ(record.counters, -1);
        continue;
      }
      expectCounted(activity, record);
      places.insert(record.counters);
      const KernelCounters& counted = activity.counters[static_cast<std::size_t>(record.counters)];
      read.insert(counted.readBytes);
      EXPECT_EQ(counted.occupancy, 0.375);
      EXPECT_EQ(counted.tensor, 0);
    }
    EXPECT_EQ(places.size(), 3u);
    EXPECT_EQ(read.size(), 3u) << "three sizes";
  }
  // Lower rungs record without counting, and the way back up is open.
  ActivitySource& source = *stepscope::activityOf(**device);
  for (const auto& [rung, name] :
       {std::pair(ActivityRung::kActivity, "activity"), std::pair(ActivityRung::kEvents, "events")}) {
    source.startActivity(rung);
    EXPECT_EQ(source.rung().name, name);
    EXPECT_EQ(source.rung().reason, "") << "as it was asked for";
    EXPECT_EQ(source.takeActivity().counted, "");
  }
  EXPECT_EQ(activityOf(**device, {300}).counters.size(), 1u);
}

// What other streams do meanwhile is not counted: it is waited for.
TEST_F(CountersTest, KernelsOfSeveralStreamsAreCountedAlone) {
  ASSERT_TRUE(useFakeGpu("seed=9"));
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  ASSERT_TRUE((*device)->needStreams(3));
  const std::vector<std::int64_t> sizes{300, 9000, 64, 40000, 700, 100000};
  std::vector<DeviceMemory> memory;
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const std::int64_t size : sizes) {
    for (int i = 0; i < 2; ++i) memory.push_back(std::move(*(*device)->allocate(size * 4)));
    kernels.push_back(std::move(*builtInKernels().make("cuda", tanhOf(size))));
  }
  ActivitySource& source = *stepscope::activityOf(**device);
  source.startActivity(ActivityRung::kCounters);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    activityId = i + 1;
    std::vector<TensorView> in{{memory[2 * i].data(), DType::kF32, {sizes[i]}}},
        out{{memory[2 * i + 1].data(), DType::kF32, {sizes[i]}}};
    KernelCall call;
    call.inputs = in;
    call.outputs = out;
    call.stream = static_cast<StreamId>(i % 3);
    ASSERT_TRUE((*device)->launch(*kernels[i], call).has_value());
  }
  activityId = 0;
  ASSERT_TRUE((*device)->synchronise().has_value());
  const Activity activity = source.takeActivity();
  EXPECT_EQ(activity.counters.size(), sizes.size());
  for (const ActivityRecord& record : activity.records)
    if (record.kind == ActivityKind::kKernel) expectCounted(activity, record);
}

TEST_F(CountersTest, WithoutRightsThereIsActivityAndOneLineThatSaysWhy) {
  ASSERT_TRUE(useFakeGpu());
  order("refuse=35");  // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  for (int round = 0; round < 2; ++round) {
    const Activity activity = activityOf(**device, {300, 5000});
    const auto rung = stepscope::activityOf(**device)->rung();
    EXPECT_EQ(rung.name, "activity");
    EXPECT_NE(rung.reason.find("ERR_NVGPUCTRPERM"), std::string::npos) << rung.reason;
    EXPECT_EQ(rung.reason.find('\n'), std::string::npos);
    EXPECT_TRUE(activity.counters.empty());
    EXPECT_EQ(activity.counted, "");
    EXPECT_EQ(activity.uncounted, 0) << "nothing was to be counted";
    EXPECT_EQ(activity.lost, 0);
  }
}

TEST_F(CountersTest, WhatCuptiRefusesIsARungLowerWithTheReason) {
  ASSERT_TRUE(useFakeGpu());
  for (const auto& [faults, reason] :
       {std::pair("refuse=40", "ERR_NVGPUCTRPERM"), std::pair("refuse=999", "enable answered error 999"),
        std::pair("pass=1", "in one pass")}) {
    order(faults);
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    EXPECT_TRUE(activityOf(**device, {300}).counters.empty());
    const auto rung = stepscope::activityOf(**device)->rung();
    EXPECT_EQ(rung.name, "activity") << faults;
    EXPECT_NE(rung.reason.find(reason), std::string::npos) << rung.reason;
  }
}

// Two rungs that are refused are two reasons.
TEST_F(CountersTest, CountersAndEventsGoTogether) {
  ASSERT_TRUE(useFakeGpu());
  setenv("STEPSCOPE_FAKE_CUPTI", "refuse", 1);
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  const Activity activity = activityOf(**device, {300, 5000});
  EXPECT_EQ(activity.counters.size(), 2u);
  for (const ActivityRecord& record : activity.records)
    if (record.kind == ActivityKind::kKernel) expectCounted(activity, record);
  const auto rung = stepscope::activityOf(**device)->rung();
  EXPECT_EQ(rung.name, "counters");
  EXPECT_NE(rung.reason.find("times by events: CUPTI does not record"), std::string::npos) << rung.reason;
  order("refuse=35");
  const auto other = makeCudaDevice("cuda");
  ASSERT_TRUE(other.has_value());
  activityOf(**other, {300});
  EXPECT_EQ(stepscope::activityOf(**other)->rung().name, "events");
  EXPECT_NE(stepscope::activityOf(**other)->rung().reason.find("ERR_NVGPUCTRPERM"), std::string::npos);
  EXPECT_NE(stepscope::activityOf(**other)->rung().reason.find("CUPTI does not record"), std::string::npos);
}

// Nothing runs twice, so what a second pass would count is left out.
TEST_F(CountersTest, WhatNeedsASecondPassIsLeftOut) {
  ASSERT_TRUE(useFakeGpu());
  for (const auto& [faults, occupancy, tensor] : {std::tuple("pass=3", 0.375, -1.0), std::tuple("pass=2", -1.0, -1.0)}) {
    order(faults);
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    const Activity activity = activityOf(**device, {300});
    EXPECT_EQ(stepscope::activityOf(**device)->rung().name, "counters");
    ASSERT_EQ(activity.counters.size(), 1u) << faults;
    EXPECT_GT(activity.counters[0].readBytes, 0);
    EXPECT_EQ(activity.counters[0].occupancy, occupancy) << faults;
    EXPECT_EQ(activity.counters[0].tensor, tensor) << faults;
  }
}

TEST_F(CountersTest, WhatIsLostOnTheWayIsCounted) {
  ASSERT_TRUE(useFakeGpu());
  for (const auto& [faults, lost] : {std::pair("lose=2", 2), std::pair("no-values", 4)}) {
    order(faults);
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    const Activity activity = activityOf(**device, {300, 5000, 64, 70});
    EXPECT_EQ(activity.uncounted, lost) << faults;
    EXPECT_EQ(static_cast<int>(activity.counters.size()), 4 - lost) << faults;
    for (const ActivityRecord& record : activity.records)
      if (record.kind == ActivityKind::kKernel && record.counters >= 0) expectCounted(activity, record);
  }
}

// There is room for the ranges of a thousand calls; a step with more has it in the next recording.
TEST_F(CountersTest, RoomGrowsWithTheStep) {
  ASSERT_TRUE(useFakeGpu());
  const auto device = makeCudaDevice("cuda");
  ASSERT_TRUE(device.has_value());
  const KernelSpec spec = tanhOf(8);
  const auto kernel = builtInKernels().make("cuda", spec);
  auto in = (*device)->allocate(32), out = (*device)->allocate(32);
  ASSERT_TRUE(kernel && in && out);
  constexpr int kCalls = 1100, kRoom = 1024;
  std::vector<TensorView> inputs{{in->data(), DType::kF32, {8}}}, outputs{{out->data(), DType::kF32, {8}}};
  KernelCall call;
  call.inputs = inputs;
  call.outputs = outputs;
  for (const int missing : {kCalls - kRoom, 0}) {
    ActivitySource& source = *stepscope::activityOf(**device);
    source.startActivity(ActivityRung::kCounters);
    activityId = 1;
    for (int i = 0; i < kCalls; ++i) ASSERT_TRUE((*device)->launch(**kernel, call).has_value());
    activityId = 0;
    ASSERT_TRUE((*device)->synchronise().has_value());
    const Activity activity = source.takeActivity();
    EXPECT_EQ(activity.uncounted, missing);
    EXPECT_EQ(static_cast<int>(activity.counters.size()), kCalls - missing);
  }
}

}  // namespace
}  // namespace stepscope
