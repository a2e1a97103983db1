// When the GPU did what (kernels/activity.h), by timing events around every kernel, copy and fill: the rung of the ladder
// that needs no rights and no library beside the driver. Its clock counts from an event that is recorded when recording
// begins. An event tells times to half a microsecond, and recording two of them takes a few microseconds of the stream.
#pragma once

#include <vector>

#include "kernels/activity.h"
#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

// Calls come with the context current. An error of the driver ends recording: what is missing then counts as lost.
class EventTimes {
 public:
  explicit EventTimes(const Driver& driver) : driver_(driver) {}
  ~EventTimes();  // the streams have been waited for
  EventTimes(const EventTimes&) = delete;
  EventTimes& operator=(const EventTimes&) = delete;

  void start(CuStream stream);  // the stream that the clock is read on, which nothing else is on
  Activity take(CuStream stream);
  std::int64_t lost() const { return lost_; }

  // Around work that is put on a stream for activityId.
  void begin(CuStream stream, StreamId id);
  void end(CuStream stream);

 private:
  struct Work {
    std::uint64_t id = 0;
    StreamId stream = 0;
    CuEvent begin = nullptr, end = nullptr;
    bool ended = false;
  };
  CuEvent nextEvent();                                   // one that is not in use; null after an error
  bool readClock(CuStream stream, Activity& into);       // adds a pair
  std::int64_t since(CuEvent event, bool& known) const;  // ns since origin_

  const Driver& driver_;
  std::vector<CuEvent> events_;  // all that were made; those from used_ on are free
  std::size_t used_ = 0;
  std::vector<Work> work_;
  CuEvent origin_ = nullptr;
  Activity activity_;
  bool on_ = false, open_ = false;  // open_: between begin and end
  std::int64_t lost_ = 0;
};

}  // namespace stepscope::cuda
