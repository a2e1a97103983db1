// A device with memory of its own: what it refuses says what is free, and capacity is asked of it.
#include <gtest/gtest.h>

#include <string>

#include "engine/plan/fits.h"
#include "kernels/device.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

TEST(DeviceMemory, IsThatOfTheMachineWhereItHasNoneOfItsOwn) {
  EXPECT_EQ(deviceMemoryBytes("emulated:memory=1499"), 1499);
  EXPECT_EQ(deviceMemoryBytes("emulated"), machineMemoryBytes());
  EXPECT_EQ(deviceMemoryBytes("cpu"), machineMemoryBytes());
}

TEST(DeviceMemory, AnAllocationBeyondItSaysWhatIsFree) {
  const auto device = findDevice("emulated:memory=1000");
  ASSERT_TRUE(device.has_value());
  auto held = (*device)->allocate(600);
  ASSERT_TRUE(held.has_value());
  const auto more = (*device)->allocate(401);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(more.error().message.find("400 of 1000 bytes are free"), std::string::npos) << more.error().message;
  held = DeviceMemory();
  EXPECT_TRUE((*device)->allocate(1000).has_value());
}

// The bound is the memory of the device, or of the machine that a file describes; not that of the host beside it.
TEST(DeviceMemory, BoundsWhatCapacityFinds) {
  snapshot::GetCapacity asked;
  asked.set_dimension("batch");
  asked.set_least(1);
  asked.set_most(4096);
  auto session = testing::openedSession(testing::languageModel(), {{"device", "emulated:memory=20971520"}, {"data", ""}});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  const auto report = (*session)->lab().capacity(asked);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_EQ(report->memory_bytes(), 20 << 20);
  EXPECT_GT(report->largest(), 0);
  EXPECT_LT(report->largest(), 4096);
  asked.set_machine(R"({"name": "two GPUs", "memory_bytes": 10485760, "peak": {"operations_per_second": 1e12,
                        "levels": [{"name": "memory", "bytes_per_second": 1e11}]}})");
  asked.set_machine_name("two.json");
  const auto described = (*session)->lab().capacity(asked);
  ASSERT_TRUE(described.has_value()) << described.error().message;
  EXPECT_EQ(described->memory_bytes(), 10 << 20);
  EXPECT_LT(described->largest(), report->largest());
}

}  // namespace
}  // namespace stepscope
