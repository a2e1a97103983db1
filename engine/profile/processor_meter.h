// What a step takes of the processors beside what it takes of the clock: on a busy machine the two part.
//
// Processor time is that of the whole process. Waiting is of the threads that compute (the caller, and its OpenMP team once
// a step has taken more processor time than one thread can: asking for the team would start it): how long they were ready
// to run and had no core, summed up over them. Source: clock_gettime(CLOCK_PROCESS_CPUTIME_ID) and
// /proc/self/task/*/schedstat; where the system has no such files nothing is known to have waited.
//
// Cost: reading the files takes microseconds for each thread. They are read after steps of 20 ms or more; after shorter
// steps once in 20 ms, and that step then has the waiting of those before it too. They are read more seldom where reading
// would take more than half a percent of the time.
// Thread: that of the steps. Times are nanoseconds.
#pragma once

#include <cstdint>
#include <map>

namespace stepscope {

struct ProcessorUse {
  std::int64_t cpu = 0;   // 0: not measured
  std::int64_t wait = 0;  // 0: none, or not measured
};

class ProcessorMeter {
 public:
  void begin();        // of a step
  ProcessorUse end();  // of it

 private:
  std::int64_t waited();  // since it was last called; of threads that are new since then nothing

  int caller_ = 0;                      // thread whose waiting is known, and with team_ that of its team
  bool team_ = false;                   // a step has computed with several threads
  std::map<int, std::int64_t> waited_;  // by thread id, as last read
  std::int64_t cpu_ = 0, began_ = 0, ended_ = 0, read_ = 0, cost_ = 0;
};

// How long the caller and its team of `threads` were ready to run and had no core: read whenever it is asked, for who
// measures single short steps.
class TeamQueue {
 public:
  explicit TeamQueue(int threads);
  std::int64_t sinceLast();  // since it was made or asked

 private:
  std::map<int, std::int64_t> queued_;  // by thread id
};

// All threads that the process has now: how long each was ready to run and had no core since it began, by thread id.
std::map<int, std::int64_t> queuedByThread();

}  // namespace stepscope
