// The thread on which a rank's collectives run beside its computation, one after another.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "kernels/status.h"

namespace stepscope {

class RankThread {
 public:
  using Job = std::function<Status()>;

  RankThread();
  // Waits for all jobs.
  ~RankThread();
  RankThread(const RankThread&) = delete;
  RankThread& operator=(const RankThread&) = delete;

  // Puts it behind those that are there. Any thread, as for the rest; but one asks for results.
  void post(Job job);
  // The result of the oldest job that was not asked for; waits for it. There has to be one.
  Status take();
  // Waits until nothing runs. Results stay to be asked for.
  void settle();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first one runs
  std::deque<Status> results_;
  bool ends_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace stepscope
