// Two looks at a clock per kernel, one at none where nothing runs: what a span says is what the operating system's clock
// says.
#include "engine/exec/clock.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/step/stepper.h"
#include "engine/train/session.h"
#include "tests/support/models.h"

namespace stepscope {
namespace {

std::int64_t now(const TickClock& clock) { return clock.usesCounter() ? TickClock::counter() : monotonicNs(); }

void work(std::int64_t ns) {
  for (const std::int64_t end = monotonicNs() + ns; monotonicNs() < end;) {
  }
}

TEST(TickClock, TellsWhatTheClockOfTheSystemTells) {
  for (const bool cheap : {false, true}) {
    const std::int64_t begin = monotonicNs();
    TickClock clock(cheap);
    struct Look {
      std::int64_t before, ticks, after;
    };
    std::vector<Look> looks;
    for (int i = 0; i < 20; ++i) {
      const std::int64_t before = monotonicNs(), ticks = now(clock);
      looks.push_back({before, ticks, monotonicNs()});
      work(500'000);
    }
    clock.settle();
    const std::int64_t end = monotonicNs();
    // How far the two clocks may be apart: the first and the last look at both, and what the system's clock is steered by
    // meanwhile.
    constexpr std::int64_t kApart = 2'000;
    std::int64_t last = begin;
    for (const Look& look : looks) {
      const std::int64_t ns = clock.ns(look.ticks);
      EXPECT_GE(ns, look.before - kApart);
      EXPECT_LE(ns, look.after + kApart);
      EXPECT_GE(ns, last);
      EXPECT_LE(ns, end);
      last = ns;
    }
  }
}

TEST(TickClock, NothingLiesOutsideOfItsInterval) {
  const std::int64_t begin = monotonicNs();
  TickClock clock(true);
  const std::int64_t first = now(clock), long0 = first - 1'000'000'000;
  clock.settle();
  const std::int64_t end = monotonicNs(), late = now(clock) + 1'000'000'000;
  if (!TickClock::counterIsTrusted())
    GTEST_SKIP() << "the system does not keep time with the processor's counter here, so it is not used";
  EXPECT_GE(clock.ns(long0), begin);
  EXPECT_LE(clock.ns(late), end);
  EXPECT_LE(clock.ns(long0), clock.ns(late));
}

class SpansOfModel : public ::testing::TestWithParam<testing::TestModel> {};

TEST_P(SpansOfModel, FollowEachOtherWithinTheRunAndLastOnlyWhereAKernelRan) {
  auto session = Session::open(GetParam().model, {}, {});
  ASSERT_TRUE(session.has_value()) << session.error().message;
  TrainOptions options;
  for (const auto& [name, value] :
       {std::pair<std::string, std::string>{"data", GetParam().data.string()}, {"loss", GetParam().loss}, {"threads", "1"}})
    ASSERT_TRUE(applySetting(options, name, value, "test").has_value());
  ASSERT_TRUE((*session)->setOptions(options).has_value());
  ASSERT_TRUE((*session)->build().has_value());
  Executor& executor = (*session)->stepper().executor();
  const int count = static_cast<int>(executor.plan().instructions.size());
  std::vector<Span> spans;
  const Executor::RunOptions run{.spans = &spans};
  const std::int64_t begin = monotonicNs();
  ASSERT_EQ(executor.run(0, count, run).value(), count);
  const std::int64_t end = monotonicNs();
  ASSERT_EQ(spans.size(), static_cast<std::size_t>(count));
  std::int64_t last = begin;
  for (int i = 0; i < count; ++i) {
    const Span& span = spans[static_cast<std::size_t>(i)];
    EXPECT_EQ(span.instruction, i);
    EXPECT_GE(span.begin, last);
    EXPECT_GE(span.end, span.begin);
    if (i > 0 && executor.plan().instructions[static_cast<std::size_t>(i)].view)
      EXPECT_EQ(span.begin, last) << "a clock was looked at for nothing";
    if (executor.plan().instructions[static_cast<std::size_t>(i)].view) EXPECT_EQ(span.end, span.begin);
    last = span.end;
  }
  EXPECT_LE(last, end);
}

INSTANTIATE_TEST_SUITE_P(Models, SpansOfModel, ::testing::ValuesIn(testing::testModels()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stepscope
