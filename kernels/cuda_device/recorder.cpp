#include "kernels/cuda_device/recorder.h"

#include "kernels/cuda_device/cupti_activity.h"
#include "kernels/cuda_device/event_times.h"

namespace stepscope::cuda {

void Recorder::start(CuStream clock) {
  if (recording_) {
    recording_->start(clock);
    return;
  }
  const auto cupti = Cupti::load();
  if (cupti) {
    recording_ = std::make_unique<CuptiActivity>(**cupti);
    rung_ = {"activity", ""};
    if (recording_->start(clock)) return;
  }
  recording_ = std::make_unique<EventTimes>(driver_);
  recording_->start(clock);
  rung_ = {"events",
           cupti ? "CUPTI does not record; it may need rights, or another program uses it" : cupti.error().message};
}

Activity Recorder::take(CuStream clock) { return recording_ ? recording_->take(clock) : Activity{}; }

}  // namespace stepscope::cuda
