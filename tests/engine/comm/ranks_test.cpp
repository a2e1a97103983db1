#include "engine/comm/ranks.h"

#include "tests/engine/comm/rank_threads.h"

namespace stepscope::testing {
namespace {

std::vector<Status> onRanksOfARun(int ranks, const std::function<Status(Ranks&)>& body) {
  auto transports = makeLocalTransports(ranks);
  EXPECT_TRUE(transports.has_value());
  std::vector<Status> answers(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < answers.size(); ++r)
    threads.emplace_back([&, r] {
      Ranks all(std::make_unique<Communicator>(std::move((*transports)[r]), 20));
      answers[r] = body(all);
    });
  for (std::thread& thread : threads) thread.join();
  return answers;
}

// One rank replays its step; the other one is not there to be asked.
TEST(Ranks, AReplayUsesWhatWasReceivedAndSendsNothing) {
  expectAll(onRanksOfARun(2, [](Ranks& ranks) -> Status {
    ranks.keepReceived(true);
    Tensor x(DType::kF32, {2});
    const TensorView view = x.view();
    const auto exchange = [&](std::int64_t step) {
      x.as<float>()[0] = static_cast<float>(ranks.rank() + 1);
      return ranks.allReduce({"x", step}, std::span(&view, 1), std::span(&view, 1), false);
    };
    SS_TRY(exchange(0));
    const std::int64_t count = ranks.communicator().total().count;
    if (ranks.rank() == 0) SS_TRY(exchange(0));
    if (x.as<float>()[0] != 3) return invalid("not the sum");
    if (ranks.communicator().total().count != count) return invalid("something was sent");
    return exchange(1);
  }));
}

TEST(Ranks, AReplayOfWhatWasNotKeptIsAnError) {
  expectAll(onRanksOfARun(2, [](Ranks& ranks) -> Status {
    double value = ranks.rank() + 5;
    SS_TRY(ranks.smallest("scale", 0, value));
    if (value != 5) return invalid("not the smallest");
    const Status again = ranks.smallest("scale", 0, value);
    if (again || again.error().code != ErrorCode::kNotFound) return invalid("expected an error");
    return ranks.smallest("scale", 1, value);
  }));
}

TEST(Ranks, TimesAreThoseSinceTheyWereAsked) {
  expectAll(onRanksOfARun(2, [](Ranks& ranks) -> Status {
    double value = 1;
    SS_TRY(ranks.smallest("a", 0, value));
    const CollectiveTimes first = ranks.takeTimes();
    if (first.count != 1 || first.sentBytes != 8 || first.receivedBytes != 8) return invalid("not one number");
    if (ranks.takeTimes().count != 0) return invalid("counted twice");
    return {};
  }));
}

}  // namespace
}  // namespace stepscope::testing
