// A whole conversation with a worker in this process: all requests at once, then the answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/snapshot/worker.pb.h"
#include "engine/wire/framing.h"
#include "engine/wire/server.h"

namespace stepscope::testing {

// Everything is written first, then the stream ends: the answers come back in full.
struct Conversation {
  std::vector<snapshot::Response> responses;
  Status ended;
};
Conversation talk(const std::string& bytes, std::uint32_t largestReply = kLargestMessage);
// The last answer to the request; a failure of the test where there is none.
const snapshot::Response* answer(const Conversation& conversation, std::uint64_t id);

std::string frame(const std::string& bytes);  // behind their length
template <typename F>
std::string request(std::uint64_t id, F&& fill) {
  snapshot::Request r;
  r.set_id(id);
  fill(r);
  return frame(r.SerializeAsString());
}

std::string hello(std::uint64_t id);
std::string openedAndBuilt();  // requests 1 to 4: greeted, the language model opened, set up and built

}  // namespace stepscope::testing
