// A machine that is described in a file: what is read, and what is wrong with it.
#include "engine/profile/machine_file.h"

#include <gtest/gtest.h>

namespace stepscope {
namespace {

std::string errorOf(const char* text) {
  const auto machine = parseMachine(text, "m.json");
  return machine ? std::string() : machine.error().message;
}

TEST(MachineFile, IsReadAsItIsWritten) {
  const auto machine = parseMachine(
      R"({"event": "machine", "name": "node 7", "memory_bytes": 25769803776, "cpu": "x",
          "peak": {"threads": 32, "operations_per_second": 2.1e12, "bfloat16_operations_per_second": 8.4e12, "ns": 3,
                   "levels": [{"name": "shared cache", "capacity": 33554432, "working_set": 1, "bytes_per_second": 4e11},
                              {"name": "memory", "capacity": 0, "bytes_per_second": 2e11}]}})",
      "m.json");
  ASSERT_TRUE(machine.has_value()) << machine.error().message;
  const MachineFile& m = **machine;
  EXPECT_EQ(m.name, "node 7");
  EXPECT_EQ(m.memoryBytes, 25769803776);
  EXPECT_EQ(m.peak.threads, 32);
  EXPECT_EQ(m.peak.operationsPerSecond, 2.1e12);
  EXPECT_EQ(m.peak.operationsIn(DType::kBF16), 8.4e12);
  ASSERT_EQ(m.peak.levels.size(), 2u);
  EXPECT_EQ(m.peak.levels[0].name, "shared cache");
  EXPECT_EQ(m.peak.levels[0].capacity, 33554432);
  EXPECT_EQ(m.peak.levels[1].name, "memory");
  EXPECT_EQ(m.peak.levels[1].capacity, 0);
  EXPECT_EQ(m.peak.levels[1].bytesPerSecond, 2e11);
}

TEST(MachineFile, SaysWhatIsWrong) {
  EXPECT_EQ(errorOf("products fast"), "machine 'm.json': found no JSON; expected an object");
  EXPECT_EQ(errorOf("[1]"), "machine 'm.json': found array; expected an object");
  EXPECT_EQ(errorOf("{}"), "machine 'm.json': peak: found nothing; expected an object");
  EXPECT_EQ(errorOf(R"({"memory_bytes": -1, "peak": {}})"),
            "machine 'm.json': memory_bytes: found -1; expected a number above 0");
  EXPECT_EQ(errorOf(R"({"peak": {"operations_per_second": "fast"}})"),
            "machine 'm.json': peak.operations_per_second: found string; expected a number above 0");
  EXPECT_EQ(errorOf(R"({"peak": {"operations_per_second": 1, "levels": []}})"),
            "machine 'm.json': peak.levels: found array; expected a list of 1 to 8 levels, fastest first");
  EXPECT_EQ(errorOf(R"({"peak": {"operations_per_second": 1, "levels": [{"name": "a", "bytes_per_second": 1},
                                                                        {"name": "b", "bytes_per_second": 1}]}})"),
            "machine 'm.json': peak.levels[0].capacity: found nothing; expected a number above 0");
  EXPECT_EQ(errorOf(R"({"peak": {"operations_per_second": 1, "levels": [{"bytes_per_second": 1}]}})"),
            "machine 'm.json': peak.levels[0].name: found no text; expected the name of the level");
}

}  // namespace
}  // namespace stepscope
