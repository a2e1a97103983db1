#include "kernels/cuda_device/event_times.h"

#include <chrono>
#include <utility>

namespace stepscope::cuda {
namespace {

std::int64_t hostNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

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
  const std::int64_t before = hostNow();
  if (driver_.eventRecord(event, stream) != kCuSuccess || driver_.eventSynchronize(event) != kCuSuccess) return false;
  const std::int64_t after = hostNow();
  bool known = false;
  const std::int64_t device = since(event, known);
  if (known) into.clocks.push_back({device, before + (after - before) / 2});
  return known;
}

void EventTimes::start(CuStream stream) {
  used_ = 0;
  work_.clear();
  activity_ = {};
  origin_ = nullptr;
  open_ = false;
  on_ = readClock(stream, activity_);
}

void EventTimes::begin(CuStream stream, StreamId id) {
  open_ = false;
  if (!on_ || activityId == 0) return;
  Work work{activityId, id, nextEvent(), nextEvent(), false};
  open_ = work.begin && work.end && driver_.eventRecord(work.begin, stream) == kCuSuccess;
  work_.push_back(work);
}

void EventTimes::end(CuStream stream) {
  if (!std::exchange(open_, false)) return;
  work_.back().ended = driver_.eventRecord(work_.back().end, stream) == kCuSuccess;
}

Activity EventTimes::take(CuStream stream) {
  if (!on_) return {};
  on_ = false;
  readClock(stream, activity_);
  for (const Work& work : work_) {
    bool first = false, last = false;
    if (work.ended) {
      const std::int64_t begin = since(work.begin, first), end = since(work.end, last);
      if (first && last) activity_.records.push_back({work.id, work.stream, begin, end});
    }
    if (!first || !last) ++activity_.lost;
  }
  lost_ += activity_.lost;
  return std::exchange(activity_, {});
}

}  // namespace stepscope::cuda
