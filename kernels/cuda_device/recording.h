// What makes the records of a GPU (kernels/activity.h): one rung of the ladder each.
//
// Calls come with the context current and in the thread that puts the work on a stream. `begin` and `end` stand around the
// calls of the driver for one copy, fill, kernel or wait; work without activityId is not recorded.
#pragma once

#include <cstdint>

#include "kernels/activity.h"
#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

class Recording {
 public:
  // What is put on a stream, or waited for.
  struct Work {
    ActivityKind kind = ActivityKind::kKernel;
    std::int64_t bytes = 0;
    const ActivityKernel* kernel = nullptr;  // borrowed until `end`; null for copies and fills
    std::int32_t counters = -1;              // as of its record
  };
  virtual ~Recording() = default;  // the streams have been waited for
  // False: it cannot record now; nothing has begun. `clock`: a stream on which nothing else is.
  virtual bool start(CuStream clock) = 0;
  // When the streams have been waited for.
  virtual Activity take(CuStream clock) = 0;
  virtual std::int64_t lost() const = 0;
  // `stream`: null where the host waits for an event, `id` then is kNoStream.
  virtual void begin(CuStream stream, StreamId id, const Work& work) = 0;
  virtual void end(CuStream stream) = 0;
};

// The number of the kernel among those of the activity, which gets it.
std::int32_t numberOf(Activity& activity, const ActivityKernel& kernel);

}  // namespace stepscope::cuda
