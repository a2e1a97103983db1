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

// The number in front of " bytes of device" in the error of a plan that is too large.
std::int64_t neededBytes(const std::string& error) {
  const std::size_t at = error.find("needs ");
  return at == std::string::npos ? 0 : std::stoll(error.substr(at + 6));
}

// Said before the run, by the name of the device, with what was found and expected; graph, plan and state can be looked at.
TEST(DeviceMemory, AStepThatDoesNotFitIsRefusedBeforeItRuns) {
  const auto session = testing::openSession(testing::languageModel(), {{"device", "emulated:memory=100000"}});
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(session->alerts().size(), 1u);
  EXPECT_EQ(session->alerts()[0].code(), "does_not_fit");
  const std::string told = session->alerts()[0].message();
  for (const char* part :
       {" bytes of device 'emulated:memory=100000'", "expected at most 100000 bytes, the memory that it has free",
        "at the peak (instruction", "hint: a smaller batch, or option recompute.budget"})
    EXPECT_NE(told.find(part), std::string::npos) << part << " is not in " << told;
  const auto plan = session->planSnapshot();
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_GT(plan->arena_bytes(), 100000);
  EXPECT_EQ(neededBytes(told), 100000 - plan->arena_room_bytes() + plan->arena_bytes());
  EXPECT_FALSE(testing::stateBits(*session).empty());
  for (const auto& step : {session->step(), session->step()}) {
    ASSERT_FALSE(step.has_value());
    EXPECT_EQ(step.error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(step.error().message, told);
  }
  EXPECT_FALSE(session->beginStep().has_value());
}

// What is asked for is what a step takes: with it steps run, with one byte less none does.
TEST(DeviceMemory, IsAskedForInTheAmountThatStepsTake) {
  const auto refused = testing::openSession(testing::languageModel(), {{"device", "emulated:memory=100000"}});
  ASSERT_NE(refused, nullptr);
  const std::int64_t need = neededBytes(refused->alerts()[0].message());
  ASSERT_GT(need, 100000);
  // Of a recorded graph: the key of its random numbers.
  constexpr std::int64_t kGraphBytes = 1 << 10;
  const auto runs =
      testing::openSession(testing::languageModel(), {{"device", "emulated:memory=" + std::to_string(need + kGraphBytes)}});
  ASSERT_NE(runs, nullptr);
  const auto without = testing::openSession(testing::languageModel(), {{"device", "emulated"}});
  for (int i = 0; i < 3; ++i) {
    const auto step = runs->step(), same = without->step();
    ASSERT_TRUE(step.has_value()) << step.error().message;
    EXPECT_EQ(step->loss(), same->loss());
  }
  const auto less =
      testing::openSession(testing::languageModel(), {{"device", "emulated:memory=" + std::to_string(need - 1)}});
  ASSERT_NE(less, nullptr);
  EXPECT_EQ(less->step().error().code, ErrorCode::kOutOfMemory);
}

// A plan that was refused is followed by one that fits, with the same state, and by one that does not again.
TEST(DeviceMemory, RecomputeMakesAStepFit) {
  const auto plain = testing::openSession(testing::languageModel(), {{"device", "emulated:memory=100000"}});
  ASSERT_NE(plain, nullptr);
  const auto first = plain->planSnapshot();
  const std::int64_t need = neededBytes(plain->alerts()[0].message());
  const std::string device = "emulated:memory=" + std::to_string(need - first->arena_bytes() / 20);
  const auto session = testing::openSession(testing::languageModel(), {{"device", device}});
  ASSERT_NE(session, nullptr);
  ASSERT_FALSE(session->step().has_value());
  const std::string before = testing::stateBits(*session);
  const auto plan = session->planSnapshot();
  TrainOptions options = session->options();
  ASSERT_TRUE(applySetting(options, "recompute.budget", std::to_string(plan->arena_room_bytes() * 95 / 100), "test"));
  ASSERT_TRUE(session->setOptions(options).has_value());
  ASSERT_TRUE(session->build().has_value());
  EXPECT_EQ(testing::stateBits(*session) == before, true);
  const auto step = session->step();
  ASSERT_TRUE(step.has_value()) << step.error().message;
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
