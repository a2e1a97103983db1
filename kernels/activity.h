// When a device did what, by its own clock: a record of every kernel, copy and fill that ran on a stream, with the id of the
// instruction that put it there. Devices that can tell are ActivitySources too.
//
// Each tells too which call put it there, and when that call was made: from its return to the beginning of the work is the
// delay in the queue. Of kernels it says what they take of a multiprocessor.
//
// Beside this work there are records of waiting: a call by which a stream will wait for an event, and a call in which the
// host waited; they have the id of the instruction that waited. Overhead is what recording and the driver took for
// themselves; it is nobody's.
//
// A device tells by the highest rung of a ladder that it can reach and that is asked for (ActivityRung). Counters cost most:
// every kernel then runs alone, so waits and times are not those of a step that nobody counts.
//
// Records may come in any order, and some may be missing; how many is told. The clock of a device has its own beginning and
// its own rate: pairs of readings at the same moment lead to the host's (engine/exec/device_times.h). Times are nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace stepscope {

// "host": times of the host, no records. "events": timing events around the work, which tell of no waits and no overhead.
// "activity": records that the driver's profiling library or the emulator makes. "counters": these, with what was counted
// while each kernel ran.
enum class ActivityRung : std::uint8_t { kHost, kEvents, kActivity, kCounters };

// What a record is of.
enum class ActivityKind : std::uint8_t { kKernel, kCopyIn, kCopyOut, kCopyWithin, kFill, kStreamWait, kHostWait, kOverhead };

// Whether it runs on a stream.
inline bool isWork(ActivityKind kind) { return kind < ActivityKind::kStreamWait; }

// In place of a stream, where there is none.
inline constexpr StreamId kNoStream = -1;

// What a device did, when, and for whom.
struct ActivityRecord {
  std::uint64_t id = 0;             // activityId of the thread that put it on the stream, or waited; 0: nobody's
  StreamId stream = 0;              // of a wait of the host for an event, and of overhead: kNoStream
  std::int64_t begin = 0, end = 0;  // of the device's clock
  ActivityKind kind = ActivityKind::kKernel;
  std::int32_t kernel = -1;               // of Activity::kernels; -1: no kernel
  std::uint64_t correlation = 0;          // of the call that put it there, unique within a recording
  std::int64_t called = 0, returned = 0;  // when that call began and ended; 0: not known
  bool callsByDevice = false;             // these two are of the device's clock too, else of the host's
  std::int64_t bytes = 0;                 // of a copy or fill
  const char* what = "";                  // of a wait: what was waited for; of overhead: what it was spent on
  std::int32_t counters = -1;             // of Activity::counters, which no other record has; -1: not counted
};

// What was counted while the kernels of one call ran.
struct KernelCounters {
  std::int64_t readBytes = 0, writtenBytes = 0;  // Activity::counted says where
  double occupancy = -1;  // part of the threads of a multiprocessor that were there; below 0: not counted
  double tensor = -1;     // part of the time in which tensor cores worked; below 0: not counted
};

// A kernel with the shape of a launch. Numbers that are not known are 0.
struct ActivityKernel {
  std::string name;
  std::int64_t blocks = 0;
  int threads = 0;    // of a block
  int registers = 0;  // of a thread
  std::int64_t sharedBytes = 0;
  double occupancy = 0;  // part of the threads of a multiprocessor that can be there at once
  bool operator==(const ActivityKernel&) const = default;
};

// The host's clock: CLOCK_MONOTONIC.
inline std::int64_t hostClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Both clocks at one moment.
struct ClockPair {
  std::int64_t device = 0, host = 0;
};

struct Activity {
  std::vector<ActivityRecord> records;
  std::vector<ActivityKernel> kernels;
  std::vector<ClockPair> clocks;  // in their order; the first from before the records, the last from behind them
  std::int64_t lost = 0;          // records that there were and that are not above
  std::vector<KernelCounters> counters;
  std::string counted;         // what the bytes of `counters` are, for people; empty: nothing was to be counted
  std::int64_t uncounted = 0;  // kernels that should have counters and have none
};

class ActivitySource {
 public:
  virtual ~ActivitySource() = default;
  // Records from now on, by no higher rung than that; what was not taken is forgotten.
  virtual void startActivity(ActivityRung highest) = 0;
  // What has been recorded, when the streams have been waited for. Ends recording.
  virtual Activity takeActivity() = 0;
  // Records that were lost since the device is there.
  virtual std::int64_t lostActivity() const = 0;
  // By what it tells: the rung of the ladder, and why not by the one that was asked for ("" where it is that one). Known
  // once recording began.
  struct Rung {
    std::string name, reason;
  };
  virtual Rung rung() const = 0;
};

// The device as one; null: it cannot tell.
inline ActivitySource* activityOf(Device& device) { return dynamic_cast<ActivitySource*>(&device); }

// What the work that this thread puts on streams is for: 1 + the number of an instruction; 0: for none.
inline constinit thread_local std::uint64_t activityId = 0;

}  // namespace stepscope
