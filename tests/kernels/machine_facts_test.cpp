// What the system says of the machine: memory that can be taken, and the caches that its processors reach.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "kernels/available_memory.h"
#include "kernels/cache_sizes.h"
#include "kernels/cpu/loops/machine_peak.h"

namespace stepscope {
namespace {

// A machine that has read many files has few free pages and much memory.
TEST(AvailableMemory, CountsWhatTheSystemGivesBack) {
  std::istringstream text(
      "MemTotal:       16384000 kB\nMemFree:           81920 kB\nMemAvailable:   12288000 kB\nCached:         12000000 "
      "kB\n");
  EXPECT_EQ(availableBytes(text), 12288000LL * 1024);
}

TEST(AvailableMemory, IsNotGuessedFromOtherLines) {
  for (const char* other :
       {"", "MemTotal: 16384000 kB\nMemFree: 81920 kB\n", "MemAvailable: many kB\n", "MemAvailable:\n"}) {
    std::istringstream text(other);
    EXPECT_EQ(availableBytes(text), std::nullopt) << other;
  }
}

class CacheSizesTest : public ::testing::Test {
 protected:
  CacheSizesTest() { std::filesystem::remove_all(cpus_); }
  ~CacheSizesTest() override { std::filesystem::remove_all(cpus_); }

  void add(int processor, int index, const char* level, const char* type, const char* size, const char* sharedBy) {
    const auto folder = cpus_ / ("cpu" + std::to_string(processor)) / "cache" / ("index" + std::to_string(index));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "level") << level << '\n';
    std::ofstream(folder / "type") << type << '\n';
    std::ofstream(folder / "size") << size << '\n';
    std::ofstream(folder / "shared_cpu_list") << sharedBy << '\n';
  }

  std::filesystem::path cpus_ = std::filesystem::path(::testing::TempDir()) / "machine_facts_cpus";
};

// Four cores in two groups: a cache of 32 MiB each, whatever the whole processor has.
TEST_F(CacheSizesTest, AreThoseThatTheProcessorsReach) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    add(cpu, 0, "1", "Data", "48K", "");
    add(cpu, 1, "2", "Instruction", "9M", "");
    add(cpu, 2, "2", "Unified", "1024K", std::to_string(cpu).c_str());
    add(cpu, 3, "3", "Unified", "32M", cpu < 2 ? "0-1" : "2-3");
  }
  const CacheSizes all = describedCaches(cpus_, {0, 1, 2, 3});
  EXPECT_EQ(all.core, 1 << 20);
  EXPECT_EQ(all.shared, 32 << 20);
  EXPECT_EQ(all.sharedCaches, 2);
  EXPECT_EQ(describedCaches(cpus_, {0, 1}).sharedCaches, 1);
}

TEST_F(CacheSizesTest, OfAnUndescribedMachineAreNone) {
  add(0, 0, "2", "Unified", "many", "");
  const CacheSizes none = describedCaches(cpus_, {0, 7});
  EXPECT_EQ(none.core, 0);
  EXPECT_EQ(none.shared, 0);
  EXPECT_EQ(none.sharedCaches, 0);
  EXPECT_GT(cacheSizes().core, 0) << "then sysconf is asked";
}

// Else caches would hold a good part of what is said to come from memory.
TEST(MachinePeak, MeasuresMemoryFarBeyondTheCaches) {
  constexpr std::int64_t kMiB = 1 << 20;
  const auto& levels = cpu::machinePeak(1).levels;
  const std::int64_t largest = levels[levels.size() - 2].capacity;
  if (availableMemoryBytes() < 32 * largest || largest > 64 * kMiB) GTEST_SKIP() << "512 MiB are not eight times its caches";
  EXPECT_GE(levels.back().workingSet, 8 * largest);
}

// Memory that was never written is one page of zeros, read from a cache however large it is.
TEST(MachinePeak, ReadsMemoryThatWasWritten) {
  const auto mostResident = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} << 10;
  };
  for (const cpu::Traffic traffic : {cpu::Traffic::kSum, cpu::Traffic::kTriad, cpu::Traffic::kCopy})
    EXPECT_EXIT(
        {
          const std::int64_t before = mostResident();
          cpu::trafficPeak(std::int64_t{256} << 20, traffic, 1, 0);
          std::_Exit(mostResident() - before > (std::int64_t{250} << 20) ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stepscope
