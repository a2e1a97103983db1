// The rung "events": timing events around every kernel, copy and fill; waits it leaves out. It needs no rights and no
// library beside the driver.
// Its clock counts from an event that is recorded when recording begins. An event tells times to half a microsecond, and
// recording two of them takes a few microseconds of the stream. An error of the driver ends recording: what is missing then
// counts as lost.
#pragma once

#include <vector>

#include "kernels/cuda_device/recording.h"

namespace stepscope::cuda {

class EventTimes final : public Recording {
 public:
  explicit EventTimes(const Driver& driver) : driver_(driver) {}
  ~EventTimes() override;
  EventTimes(const EventTimes&) = delete;
  EventTimes& operator=(const EventTimes&) = delete;

  bool start(CuStream clock) override;
  Activity take(CuStream clock) override;
  std::int64_t lost() const override { return lost_; }
  void begin(CuStream stream, StreamId id, const Work& work) override;
  void end(CuStream stream) override;

 private:
  struct Timed {
    ActivityRecord record;
    CuEvent begin = nullptr, end = nullptr;
    bool ended = false;
  };
  CuEvent nextEvent();                                   // one that is not in use; null after an error
  bool readClock(CuStream stream, Activity& into);       // adds a pair
  std::int64_t since(CuEvent event, bool& known) const;  // ns since origin_

  const Driver& driver_;
  std::vector<CuEvent> events_;  // all that were made; those from used_ on are free
  std::size_t used_ = 0;
  std::vector<Timed> work_;
  CuEvent origin_ = nullptr;
  Activity activity_;
  bool on_ = false, open_ = false;  // open_: between begin and end
  std::int64_t lost_ = 0;
};

}  // namespace stepscope::cuda
