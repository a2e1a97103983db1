// Two sessions that train together, each in a thread.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/comm/local_ranks.h"
#include "tests/support/sessions.h"

namespace stepscope::testing {

using Parameters = std::map<std::string, Tensor>;

// Two ranks take three steps each; `body` is what the first one does for one of them. Its parameters afterwards.
inline Result<Parameters> firstOfTwo(const std::function<Status(Session&)>& body, std::int64_t* collectives = nullptr,
                                     const std::string& shard = "off", const std::map<std::string, std::string>& more = {},
                                     const TestModel& model = digits()) {
  auto transports = makeLocalTransports(2);
  if (!transports) return tl::make_unexpected(transports.error());
  Parameters parameters;
  std::map<std::string, std::string> settings = more;
  settings["ranks.shard"] = shard;
  settings.insert({{"ranks.bucket", "4096"}});
  std::vector<Status> ended(2);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      Ranks ranks(std::make_unique<Communicator>(std::move((*transports)[r]), 60));
      ended[r] = [&]() -> Status {
        SS_ASSIGN(const auto session, openedSession(model, settings));
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

}  // namespace stepscope::testing
