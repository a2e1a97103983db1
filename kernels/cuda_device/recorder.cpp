#include "kernels/cuda_device/recorder.h"

#include "kernels/cuda_device/cupti_activity.h"
#include "kernels/cuda_device/event_times.h"

namespace stepscope::cuda {

void Recorder::start(CuStream clock, ActivityRung highest) {
  if (chosen_ != highest) {
    drop();
    choose(clock, highest);
    chosen_ = highest;
    return;
  }
  recording_->start(clock);
  if (counters_) rung_ = rungWith(counters_->start());
}

ActivitySource::Rung Recorder::rungWith(const Status& counting) const {
  if (counting) return {"counters", times_.reason.empty() ? "" : "times by events: " + times_.reason};
  return {times_.name, counting.error().message + (times_.reason.empty() ? "" : "; " + times_.reason)};
}

void Recorder::choose(CuStream clock, ActivityRung highest) {
  times_ = {"events", ""};
  if (highest >= ActivityRung::kActivity) {
    const auto cupti = Cupti::load();
    if (cupti) {
      recording_ = std::make_unique<CuptiActivity>(**cupti);
      times_ = {"activity", ""};
      if (!recording_->start(clock)) recording_.reset();
    }
    if (!recording_)
      times_ = {"events",
                cupti ? "CUPTI does not record; it may need rights, or another program uses it" : cupti.error().message};
  }
  if (!recording_) {
    recording_ = std::make_unique<EventTimes>(driver_);
    recording_->start(clock);
  }
  rung_ = times_;
  if (highest < ActivityRung::kCounters) return;
  counters_ = std::make_unique<CuptiCounters>(driver_, context_, device_);
  const Status counting = counters_->start();
  rung_ = rungWith(counting);
  if (!counting) counters_.reset();
}

Activity Recorder::take(CuStream clock) {
  if (!recording_) return {};
  Activity activity = recording_->take(clock);
  if (counters_) counters_->take(activity);
  return activity;
}

void Recorder::begin(CuStream stream, StreamId id, const Recording::Work& work, bool counted) {
  if (!recording_) return;
  Recording::Work noted = work;
  if (counted && counters_ && counters_->on() && activityId != 0) noted.counters = counters_->begin();
  recording_->begin(stream, id, noted);
}

void Recorder::end(CuStream stream) {
  if (!recording_) return;
  recording_->end(stream);
  if (counters_) counters_->end();
}

void Recorder::drop() {
  counters_.reset();
  if (recording_) lost_ += recording_->lost();
  recording_.reset();
}

}  // namespace stepscope::cuda
