// The records that the fake CUPTI makes of what the fake GPU does: found by 64-bit ids, by a clock of their own, and a rung
// lower where CUPTI does not record.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

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

// Three kernels with a copy each way around them, as ids 1 to 3 of some 64-bit number, on a device of its own.
Activity activityOfThree(Device& device, std::uint64_t first) {
  const KernelSpec spec{
      "", "Tanh", {}, {{DType::kF32, {300}, false, {}, Layout::kPlain, Space::kDevice}}, {{DType::kF32, {300}}}};
  const auto kernel = builtInKernels().make("cuda", spec);
  const std::vector<Tensor> inputs{Tensor(DType::kF32, {300})};
  ActivitySource& source = *activityOf(device);
  source.startActivity();
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
    ASSERT_EQ(activity.records.size(), 12u);  // the input, the fill of the result, the kernel, the result
    std::set<std::uint64_t> correlations;
    int kernels = 0;
    for (const ActivityRecord& record : activity.records) {
      EXPECT_GE(record.id, kFirst);
      EXPECT_LE(record.id, kFirst + 2);
      EXPECT_GE(record.begin, activity.clocks[0].device) << "not by the clock of CUPTI";
      EXPECT_LE(record.begin, record.end);
      EXPECT_LE(record.end, activity.clocks[1].device);
      EXPECT_LE(activity.clocks[0].host, record.called);
      EXPECT_LE(record.called, record.returned);
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
                                               std::tuple("libm.so.6", "", "CUPTI has no cuptiGetTimestamp")}) {
    setenv("STEPSCOPE_CUPTI", library, 1);
    setenv("STEPSCOPE_FAKE_CUPTI", order, 1);
    const auto device = makeCudaDevice("cuda");
    ASSERT_TRUE(device.has_value());
    EXPECT_EQ(activityOfThree(**device, 1).records.size(), 12u) << library;
    EXPECT_EQ(activityOf(**device)->rung().name, "events");
    EXPECT_NE(activityOf(**device)->rung().reason.find(reason), std::string::npos) << activityOf(**device)->rung().reason;
  }
}

// CUPTI is one per process: the second device that records at the same time takes events.
TEST_F(CuptiTest, OneDeviceRecordsAtATime) {
  ASSERT_TRUE(useFakeGpu());
  const auto first = makeCudaDevice("cuda"), second = makeCudaDevice("cuda:0");
  ASSERT_TRUE(first.has_value() && second.has_value());
  activityOf(**first)->startActivity();
  activityOf(**second)->startActivity();
  EXPECT_EQ(activityOf(**first)->rung().name, "activity");
  EXPECT_EQ(activityOf(**second)->rung().name, "events");
  activityOf(**first)->takeActivity();
  activityOf(**second)->takeActivity();
}

}  // namespace
}  // namespace stepscope
