// Graphs that are told as soon as they are kept, on a thread of their own.
#include "engine/wire/stage_teller.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include "engine/build/registry.h"

namespace stepscope {
namespace {

// A process that dies sends what waits first.
TEST(StageTeller, TellsBeforeTheProcessDies) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has handlers of its own";
#endif
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto die = [](int number) {
    StageTeller::waitBeforeDying();
    StageTeller teller([](const Stage& stage, const Registry&) {
      usleep(50'000);
      std::fprintf(stderr, "told %s.", stage.phase.c_str());
    });
    for (const char* phase : {"load", "gradient", "optimizer"})
      teller.tell({phase, std::make_shared<const Graph>()}, Registry::builtIn());
    std::raise(number);
  };
  for (const int number : {SIGSEGV, SIGABRT})
    EXPECT_EXIT(die(number), ::testing::KilledBySignal(number), "told load.told gradient.told optimizer.");
}

TEST(StageTeller, DropsWhatWaits) {
  std::atomic<int> told = 0;
  StageTeller teller([&](const Stage&, const Registry&) {
    ++told;
    usleep(1000);
  });
  const auto graph = std::make_shared<const Graph>();
  for (int i = 0; i < 100; ++i) teller.tell({"load", graph}, Registry::builtIn());
  teller.drop();
  const int then = told;
  EXPECT_LT(then, 100);
  EXPECT_EQ(graph.use_count(), 1);
  teller.tell({"load", graph}, Registry::builtIn());
  while (told == then) std::this_thread::yield();
}

}  // namespace
}  // namespace stepscope
