#include "storage/event_queue.h"

#include <algorithm>

namespace stepscope::storage {
namespace {

constexpr std::string_view kFullQueue = "the file could not be written as fast as the run produced data";

std::string adviceFor(const std::string& what) {
  if (what == "spans") return "record fewer instructions, or write to a faster disk";
  if (what == "tensor_stats") return "watch fewer values, or set record.statistics to a larger number of steps";
  if (what == "batches") return "set record.batch to a larger number of steps, or record.batch.bytes to fewer bytes";
  return "write to a faster disk";
}

}  // namespace

void EventQueue::countLost(std::int64_t run, const std::string& what, std::int64_t amount, std::int64_t step) {
  lostTotal_ += amount;
  Lost& lost = lost_[{run, what}];
  lost.what = what;
  lost.reason = kFullQueue;
  lost.advice = adviceFor(what);
  lost.amount += amount;
  if (step < 0) return;
  lost.firstStep = lost.firstStep < 0 ? step : std::min(lost.firstStep, step);
  lost.lastStep = std::max(lost.lastStep, step);
}

void EventQueue::push(Event event) {
  const std::lock_guard lock(mutex_);
  if (closed_ || stopped_) {
    ++lostTotal_;
    return;
  }
  const bool full = bytes_ + event.bytes > limitBytes_;
  if (full) {
    if (auto* stats = std::get_if<StatsTaken>(&event.body)) return countLost(event.run, "tensor_stats", 1, stats->step);
    if (auto* step = std::get_if<StepDone>(&event.body)) {
      if (bytes_ > 2 * limitBytes_) return countLost(event.run, "steps", 1, step->step.step());
      snapshot::StepRecord& record = step->step;
      if (step->spanCount > 0) countLost(event.run, "spans", step->spanCount, record.step());
      if (record.inputs_size() > 0) countLost(event.run, "batches", 1, record.step());
      if (record.statistics_size() > 0) countLost(event.run, "tensor_stats", record.statistics_size(), record.step());
      const std::size_t before = record.ByteSizeLong() + step->spans.size();
      record.clear_inputs();
      record.clear_row_losses();
      record.clear_statistics();
      event.bytes -= std::min(event.bytes, before - record.ByteSizeLong());
      step->spanCount = 0;
      step->spans.clear();
    }
  }
  if (events_.empty()) oldest_ = std::chrono::steady_clock::now();
  bytes_ += event.bytes;
  ++pushed_;
  events_.push_back(std::move(event));
  if (events_.size() == 1) changed_.notify_all();
}

std::vector<Event> EventQueue::take(std::chrono::milliseconds age) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !events_.empty() || (hurryUntil_ > done_ && !lost_.empty()); });
  if (!events_.empty())
    changed_.wait_until(lock, oldest_ + age, [&] { return closed_ || hurryUntil_ > done_ || bytes_ > limitBytes_ / 2; });
  std::vector<Event> taken;
  taken.reserve(events_.size() + lost_.size());
  // A gap belongs to the run that has it, which may begin in this very batch.
  for (Event& event : events_) taken.push_back(std::move(event));
  for (auto& [key, lost] : lost_) {
    ++pushed_;
    taken.push_back(Event{key.first, 0, std::move(lost)});
  }
  events_.clear();
  lost_.clear();
  return taken;
}

void EventQueue::failed(std::vector<Event> events) {
  const std::lock_guard lock(mutex_);
  events_.insert(events_.begin(), std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
  ++failures_;
  hurryUntil_ = 0;
  changed_.notify_all();
}

bool EventQueue::flush() {
  std::unique_lock lock(mutex_);
  const std::int64_t target = pushed_ + static_cast<std::int64_t>(lost_.size());
  const std::int64_t failures = failures_;
  hurryUntil_ = std::max(hurryUntil_, target);
  changed_.notify_all();
  changed_.wait(lock, [&] { return stopped_ || done_ >= target || failures_ != failures; });
  return done_ >= target;
}

void EventQueue::done(std::size_t events) {
  const std::lock_guard lock(mutex_);
  done_ += static_cast<std::int64_t>(events);
  bytes_ = 0;
  for (const Event& event : events_) bytes_ += event.bytes;
  changed_.notify_all();
}

void EventQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  lostTotal_ += static_cast<std::int64_t>(events_.size());
  events_.clear();
  bytes_ = 0;
  changed_.notify_all();
}

void EventQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool EventQueue::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [&] { return closed_ || hurryUntil_ > done_; });
  return !closed_;
}

std::int64_t EventQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return pushed_ - done_;
}

std::size_t EventQueue::waitingBytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::int64_t EventQueue::lostTotal() const {
  const std::lock_guard lock(mutex_);
  return lostTotal_;
}

}  // namespace stepscope::storage
