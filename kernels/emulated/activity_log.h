// The records of what ran on the streams of an emulated device and of waits (kernels/activity.h), made hard to read as those
// of a GPU are: by a clock with another beginning and another rate, in an order that the seed chooses, and not all of them
// where the name of the device orders it. They lie in a buffer until it is full; handing it over is overhead, with a record
// of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/activity.h"

namespace stepscope::emulated {

class ActivityLog {
 public:
  // `dropEach`: every so manieth record is lost; 0: none.
  ActivityLog(std::uint64_t seed, std::int64_t dropEach);

  bool on() const { return on_; }
  bool counts() const { return on_ && rung_ == ActivityRung::kCounters; }
  void start(ActivityRung rung);
  ActivitySource::Rung rung() const;
  Activity take();
  std::int64_t lost() const { return lost_; }

  // The device's clock now.
  std::int64_t now() const;
  // A record of the kernel and what was counted of it, null for everything else.
  void add(ActivityRecord record, const ActivityKernel* kernel, const KernelCounters* counters = nullptr);
  // Of the next call that puts work on a stream, or waits.
  std::uint64_t nextCorrelation() { return ++correlation_; }

 private:
  ClockPair pair() const;
  bool drops();
  void keep(const ActivityRecord& record);
  void handOver();

  const std::int64_t dropEach_, offset_;
  const double rate_;
  std::uint64_t random_, correlation_ = 0;
  std::int64_t seen_ = 0, lost_ = 0;
  bool on_ = false;
  ActivityRung rung_ = ActivityRung::kActivity;  // of this recording, or the newest
  std::vector<ActivityRecord> buffer_;
  Activity activity_;
};

// What a launch of this shape takes of a multiprocessor of sm_90. The emulator knows no registers, which may allow less.
double occupancyOf(int threads, std::int64_t sharedBytes);

}  // namespace stepscope::emulated
