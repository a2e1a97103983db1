#include "engine/lab/free_memory.h"

#include <gtest/gtest.h>

#include <sstream>

#include "engine/plan/fits.h"

namespace stepscope {
namespace {

// A machine that has read many files has few free pages and much memory.
TEST(FreeMemory, CountsWhatTheSystemGivesBack) {
  std::istringstream text(
      "MemTotal:       16384000 kB\nMemFree:           81920 kB\nMemAvailable:   12288000 kB\nCached:         12000000 "
      "kB\n");
  EXPECT_EQ(availableBytes(text), 12288000LL * 1024);
}

TEST(FreeMemory, IsNotGuessedFromOtherLines) {
  for (const char* other :
       {"", "MemTotal: 16384000 kB\nMemFree: 81920 kB\n", "MemAvailable: many kB\n", "MemAvailable:\n"}) {
    std::istringstream text(other);
    EXPECT_EQ(availableBytes(text), std::nullopt) << other;
  }
}

TEST(FreeMemory, OfThisMachineIsAtMostAllOfIt) {
  EXPECT_GT(freeMemoryBytes(), 0);
  EXPECT_LE(freeMemoryBytes(), machineMemoryBytes());
}

}  // namespace
}  // namespace stepscope
