#include "engine/profile/processor_meter.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/exec/executor.h"

namespace stepscope {
namespace {

// Works for this long, alone on the first core that the process may use or beside rivals there. Of the wall time.
struct Shares {
  double cpu = 0, wait = 0;
};
Shares work(int rivals) {
  Shares shares;
  std::thread([&] {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++c)
      if (CPU_ISSET(c, &all)) CPU_SET(c, &one);
    sched_setaffinity(0, sizeof one, &one);
    omp_set_num_threads(1);
    std::atomic<bool> done = false;
    std::vector<std::thread> others;  // on the same core: it is inherited
    for (int i = 0; i < rivals; ++i)
      others.emplace_back([&] {
        while (!done) {
        }
      });
    ProcessorMeter meter;
    meter.begin();
    const std::int64_t begin = monotonicNs();
    while (monotonicNs() - begin < 200'000'000) {
    }
    const ProcessorUse use = meter.end();
    const auto wall = static_cast<double>(monotonicNs() - begin);
    done = true;
    for (std::thread& t : others) t.join();
    shares = {static_cast<double>(use.cpu) / wall, static_cast<double>(use.wait) / wall};
  }).join();
  return shares;
}

TEST(ProcessorMeter, TellsWaitingFromWorking) {
  if (!std::filesystem::exists("/proc/self/schedstat")) GTEST_SKIP() << "this system does not count how long threads wait";
  const Shares alone = work(0), crowded = work(3);
  EXPECT_GT(alone.cpu, 0);
  EXPECT_GT(crowded.wait, 0.4) << "three of four turns went to the others";
  EXPECT_LE(alone.wait, 1.01);
  EXPECT_LT(alone.wait, crowded.wait);
}

// A step that is shorter than the time between two readings leaves its waiting to one that comes later.
TEST(ProcessorMeter, ShortStepsHaveProcessorTimeToo) {
  ProcessorMeter meter;
  for (int i = 0; i < 3; ++i) {
    meter.begin();
    const std::int64_t begin = monotonicNs();
    while (monotonicNs() - begin < 1'000'000) {
    }
    const ProcessorUse use = meter.end();
    EXPECT_GT(use.cpu, 0);
    EXPECT_GE(use.wait, 0);
  }
}

}  // namespace
}  // namespace stepscope
