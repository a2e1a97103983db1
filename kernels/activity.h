// When a device did what, by its own clock: a record of every kernel, copy and fill that ran on a stream, with the id of the
// instruction that put it there. Devices that can tell are ActivitySources too.
//
// Records may come in any order, and some may be missing; how many is told. The clock of a device has its own beginning and
// its own rate: pairs of readings at the same moment lead to the host's (engine/exec/device_times.h). Times are nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"

namespace stepscope {

struct ActivityRecord {
  std::uint64_t id = 0;  // activityId of the thread that put it on the stream; 0: nobody's
  StreamId stream = 0;
  std::int64_t begin = 0, end = 0;  // of the device's clock
};

// Both clocks at one moment; the host's is CLOCK_MONOTONIC.
struct ClockPair {
  std::int64_t device = 0, host = 0;
};

struct Activity {
  std::vector<ActivityRecord> records;
  std::vector<ClockPair> clocks;  // in their order; the first from before the records, the last from behind them
  std::int64_t lost = 0;          // records that there were and that are not above
};

class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  // Records from now on; what was not taken is forgotten.
  virtual void startActivity() = 0;
  // What has been recorded, when the streams have been waited for. Ends recording.
  virtual Activity takeActivity() = 0;
  // Records that were lost since the device is there.
  virtual std::int64_t lostActivity() const = 0;
};

// The device as one; null: it cannot tell.
inline ActivitySource* activityOf(Device& device) { return dynamic_cast<ActivitySource*>(&device); }

// What the work that this thread puts on streams is for: 1 + the number of an instruction; 0: for none.
inline constinit thread_local std::uint64_t activityId = 0;

}  // namespace stepscope
