// A rank that is walked through its step, back and forth, while the others run theirs: they never notice.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "engine/comm/local_ranks.h"
#include "tests/support/sessions.h"

namespace stepscope {
namespace {

using Parameters = std::map<std::string, Tensor>;

// Two ranks take three steps each; `body` is what the first one does for one of them. Its parameters afterwards.
Result<Parameters> firstOfTwo(const std::function<Status(Session&)>& body, std::int64_t* collectives = nullptr,
                              const std::string& shard = "off") {
  auto transports = makeLocalTransports(2);
  if (!transports) return tl::make_unexpected(transports.error());
  Parameters parameters;
  std::vector<Status> ended(2);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      Ranks ranks(std::make_unique<Communicator>(std::move((*transports)[r]), 60));
      ended[r] = [&]() -> Status {
        const auto session = testing::openSession(testing::digits(), {{"ranks.shard", shard}});
        if (!session) return invalid("no session");
        session->joinRanks(ranks);
        SS_TRY(session->build());
        for (int step = 0; step < 3; ++step)
          if (r == 0)
            SS_TRY(body(*session));
          else
            SS_TRY(session->step());
        if (r > 0) return {};
        for (const auto& [name, tensor] : session->trained().named(false)) {
          Tensor& copy = parameters[name] = Tensor(tensor.dtype, tensor.dims);
          std::memcpy(copy.data(), tensor.data, tensor.bytes());
        }
        if (collectives) *collectives = ranks.communicator().total().count;
        return {};
      }();
      if (!ended[r]) ranks.communicator().end(ended[r].error().message);
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& end : ended)
    if (!end) return tl::make_unexpected(end.error());
  return parameters;
}

class SessionOfRanks : public ::testing::TestWithParam<const char*> {};  // what ranks keep parts of
INSTANTIATE_TEST_SUITE_P(Parts, SessionOfRanks, ::testing::Values("off", "optimizer", "gradients", "parameters"));

TEST_P(SessionOfRanks, AStepThatIsWalkedAndReplayedSendsNothingTwice) {
  std::int64_t plainCount = 0, walkedCount = 0;
  const auto plain = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.step());
        return {};
      },
      &plainCount, GetParam());
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  const auto walked = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.beginStep());
        const int count = session.stepper().count();
        for (const int place : {count - 1, 0, count / 2, count - 1, 1}) SS_TRY(session.runTo(place));
        SS_TRY(session.finishStep());
        return {};
      },
      &walkedCount, GetParam());
  ASSERT_TRUE(walked.has_value()) << walked.error().message;
  ASSERT_EQ(plain->size(), walked->size());
  for (const auto& [name, tensor] : *plain)
    EXPECT_EQ(std::memcmp(tensor.data(), walked->at(name).data(), tensor.bytes()), 0) << name;
  EXPECT_EQ(plainCount, walkedCount);
  EXPECT_GT(plainCount, 0);
}

TEST_P(SessionOfRanks, ATrialSendsNothing) {
  std::int64_t count = 0;
  const auto tried = firstOfTwo(
      [](Session& session) -> Status {
        SS_TRY(session.compareBits());
        SS_TRY(session.step());
        return {};
      },
      &count, GetParam());
  ASSERT_TRUE(tried.has_value()) << tried.error().message;
  std::int64_t plain = 0;
  ASSERT_TRUE(firstOfTwo(
                  [](Session& session) -> Status {
                    SS_TRY(session.step());
                    return {};
                  },
                  &plain, GetParam())
                  .has_value());
  EXPECT_EQ(count, plain);
}

}  // namespace
}  // namespace stepscope
