// Ranks as threads of one process.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "engine/comm/communicator.h"
#include "engine/comm/local_ranks.h"

namespace stepscope::testing {

// Runs `body` on every rank at once; what it returns, by rank.
inline std::vector<Status> onRanks(int ranks, const std::function<Status(Communicator&)>& body, double timeout = 20) {
  auto transports = makeLocalTransports(ranks);
  EXPECT_TRUE(transports.has_value());
  std::vector<Status> answers(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < answers.size(); ++r)
    threads.emplace_back([&, r] {
      Communicator communicator(std::move((*transports)[r]), timeout);
      answers[r] = body(communicator);
    });
  for (std::thread& thread : threads) thread.join();
  return answers;
}

inline void expectAll(const std::vector<Status>& answers) {
  for (std::size_t r = 0; r < answers.size(); ++r)
    EXPECT_TRUE(answers[r].has_value()) << r << ": " << answers[r].error().message;
}

}  // namespace stepscope::testing
