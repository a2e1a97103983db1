// A worker in this process that is talked to while it works.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/snapshot/worker.pb.h"
#include "engine/wire/server.h"
#include "tests/support/models.h"

namespace stepscope::testing {

class LiveWorker {
 public:
  explicit LiveWorker(GoldenReader goldens = {});
  ~LiveWorker();  // reads what was not read, and waits for the end

  std::uint64_t send(const std::function<void(snapshot::Request&)>& fill);  // the id of the request
  // The next answer of any request, events (id 0) among them; a failure of the test where the stream has ended.
  snapshot::Response next();
  // The next answer to this request, and its last one; what comes between is left out.
  snapshot::Response next(std::uint64_t id);
  snapshot::Response last(std::uint64_t id);
  snapshot::Response ask(const std::function<void(snapshot::Request&)>& fill) { return last(send(fill)); }

  snapshot::Response open(const std::filesystem::path& model);
  snapshot::Response configure(const std::vector<std::pair<std::string, std::string>>& settings);
  void openDigits();  // set up and built

 private:
  int in_[2] = {-1, -1}, out_[2] = {-1, -1};
  std::thread server_;
  std::uint64_t last_ = 0;
  bool ended_ = false;  // the stream of answers
};

}  // namespace stepscope::testing
