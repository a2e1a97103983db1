#include "engine/comm/rank_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace stepscope {
namespace {

TEST(RankThread, RunsJobsInTheirOrderBesideWhoPostsThem) {
  std::vector<int> order;
  std::atomic<bool> open = false;
  RankThread thread;
  thread.post([&]() -> Status {
    open.wait(false);  // until the other thread has come on
    order.push_back(0);
    return {};
  });
  thread.post([&]() -> Status {
    order.push_back(1);
    return invalid("second");
  });
  open = true;
  open.notify_all();
  EXPECT_TRUE(thread.take().has_value());
  const Status second = thread.take();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().message, "second");
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
}

TEST(RankThread, SettlesAndEndsWhenAllJobsHaveRun) {
  std::atomic<int> ran = 0;
  {
    RankThread thread;
    for (int i = 0; i < 3; ++i)
      thread.post([&]() -> Status {
        ++ran;
        return {};
      });
    thread.settle();
    EXPECT_EQ(ran, 3);
    EXPECT_TRUE(thread.take().has_value()) << "results are still there";
    thread.post([&]() -> Status {
      ++ran;
      return {};
    });
  }
  EXPECT_EQ(ran, 4);
}

}  // namespace
}  // namespace stepscope
