// The graphs of a build, sent on while it runs: what a worker that dies of the next pass leaves behind.
//
// A thread of its own makes the messages, so that a build does not wait for them. A build that succeeds needs none of them
// (its graphs are asked for) and drops those that wait. Graphs share their nodes with the one that is being built, so they
// are given up by the thread that builds: in tell() and drop().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/build/registry.h"
#include "engine/build/stage.h"

namespace stepscope {

class StageTeller {
 public:
  // `send` runs on the teller's thread, for one stage after the other.
  using Send = std::function<void(const Stage&, const Registry&)>;
  explicit StageTeller(Send send);
  ~StageTeller();
  StageTeller(const StageTeller&) = delete;
  StageTeller& operator=(const StageTeller&) = delete;

  // `registry`: that of the session which builds.
  void tell(const Stage& stage, std::shared_ptr<const Registry> registry);
  void drop();  // all; returns when none is in work

  // For the whole process, once: a signal that ends it (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL) waits up to two seconds
  // until what waits is sent, then takes its course.
  static void waitBeforeDying();

 private:
  void work();

  struct Told {
    Stage stage;
    std::shared_ptr<const Registry> registry;
  };
  Send send_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Told> waiting_;
  std::vector<Told> told_;  // not given up yet
  bool working_ = false, ended_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace stepscope
