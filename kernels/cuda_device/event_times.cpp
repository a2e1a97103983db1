#include "kernels/cuda_device/event_times.h"

#include <algorithm>
#include <utility>

namespace stepscope::cuda {

std::int32_t numberOf(Activity& activity, const ActivityKernel& kernel) {
  const auto found = std::ranges::find(activity.kernels, kernel);
  const auto number = static_cast<std::int32_t>(found - activity.kernels.begin());
  if (found == activity.kernels.end()) activity.kernels.push_back(kernel);
  return number;
}

EventTimes::~EventTimes() {
  for (CuEvent event : events_) driver_.eventDestroy(event);
}

CuEvent EventTimes::nextEvent() {
  if (used_ == events_.size()) {
    CuEvent event = nullptr;
    if (driver_.eventCreate(&event, kCuTiming) != kCuSuccess) return nullptr;
    events_.push_back(event);
  }
  return events_[used_++];
}

std::int64_t EventTimes::since(CuEvent event, bool& known) const {
  float milliseconds = 0;
  known = driver_.eventElapsed(&milliseconds, origin_, event) == kCuSuccess;
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

bool EventTimes::readClock(CuStream stream, Activity& into) {
  const CuEvent event = nextEvent();
  if (!event) return false;
  if (!origin_) origin_ = event;
  const std::int64_t before = hostClock();
  if (driver_.eventRecord(event, stream) != kCuSuccess || driver_.eventSynchronize(event) != kCuSuccess) return false;
  const std::int64_t after = hostClock();
  bool known = false;
  const std::int64_t device = since(event, known);
  if (known) into.clocks.push_back({device, before + (after - before) / 2});
  return known;
}

bool EventTimes::start(CuStream stream) {
  used_ = 0;
  work_.clear();
  activity_ = {};
  origin_ = nullptr;
  open_ = false;
  return on_ = readClock(stream, activity_);
}

void EventTimes::begin(CuStream stream, StreamId id, const Work& what) {
  open_ = false;
  if (!on_ || activityId == 0 || !isWork(what.kind)) return;
  Timed work{{}, nextEvent(), nextEvent(), false};
  ActivityRecord& record = work.record;
  record.id = activityId;
  record.stream = id;
  record.kind = what.kind;
  record.bytes = what.bytes;
  record.counters = what.counters;
  record.correlation = work_.size() + 1;
  if (what.kernel) record.kernel = numberOf(activity_, *what.kernel);
  open_ = work.begin && work.end && driver_.eventRecord(work.begin, stream) == kCuSuccess;
  record.called = hostClock();
  work_.push_back(work);
}

void EventTimes::end(CuStream stream) {
  if (!std::exchange(open_, false)) return;
  work_.back().record.returned = hostClock();
  work_.back().ended = driver_.eventRecord(work_.back().end, stream) == kCuSuccess;
}

Activity EventTimes::take(CuStream stream) {
  if (!on_) return {};
  on_ = false;
  readClock(stream, activity_);
  for (Timed& work : work_) {
    bool first = false, last = false;
    if (work.ended) {
      work.record.begin = since(work.begin, first);
      work.record.end = since(work.end, last);
      if (first && last) activity_.records.push_back(work.record);
    }
    if (!first || !last) ++activity_.lost;
  }
  lost_ += activity_.lost;
  return std::exchange(activity_, {});
}

}  // namespace stepscope::cuda
