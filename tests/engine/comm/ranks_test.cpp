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

// Results may take the memory of their operands, as plans let them.
TEST(Ranks, WhatAModelSendsIsReplayedWithoutTheOthers) {
  expectAll(onRanksOfARun(3, [](Ranks& ranks) -> Status {
    ranks.keepReceived(true);
    Tensor x(DType::kF32, {6}), y(DType::kF32, {6});
    const int mine = ranks.rank();
    const auto step = [&](std::int64_t number) -> Status {
      const auto set = [&] {
        for (std::size_t i = 0; i < 6; ++i) x.as<float>()[i] = static_cast<float>(10 * (mine + 1) + static_cast<int>(i));
      };
      const auto is = [&](const Tensor& tensor, std::size_t i, int expected) -> Status {
        if (tensor.as<float>()[i] == static_cast<float>(expected)) return {};
        return invalid(std::to_string(tensor.as<float>()[i]) + " on rank " + std::to_string(mine));
      };
      set();
      SS_TRY(ranks.broadcast({"broadcast", number}, x.view(), x.view(), 2));
      SS_TRY(is(x, 5, 35));
      set();
      SS_TRY(ranks.reduce({"reduce", number}, x.view(), x.view(), 1));
      SS_TRY(is(x, 1, mine == 1 ? 63 : 0));
      set();
      SS_TRY(ranks.allToAll({"turn", number}, x.view(), y.view()));
      for (int r = 0; r < 3; ++r) SS_TRY(is(y, static_cast<std::size_t>(2 * r), 10 * (r + 1) + 2 * mine));
      SS_TRY(ranks.message({"to 2", number}, x.view(), x.view(), 0, 2));
      SS_TRY(is(x, 3, mine == 2 ? 13 : 0));
      set();
      SS_TRY(ranks.message({"to itself", number}, x.view(), x.view(), 1, 1));
      return is(x, 3, mine == 1 ? 23 : 0);
    };
    SS_TRY(step(0));
    const std::int64_t count = ranks.communicator().total().count;
    if (count != (mine == 1 ? 3 : 4)) return invalid("a rank takes part in a message of others");
    if (mine == 1) SS_TRY(step(0));
    if (ranks.communicator().total().count != count) return invalid("something was sent again");
    return step(1);
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
