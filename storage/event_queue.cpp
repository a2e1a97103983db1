#include "storage/event_queue.h"

#include <algorithm>
#include <utility>

namespace stepscope::storage {
namespace {

constexpr std::string_view kFullQueue = "the file could not be written as fast as the run produced data";

std::string adviceFor(const std::string& what) {
  if (what == "spans") return "record fewer instructions, or write to a faster disk";
  if (what == "tensor_stats") return "watch fewer values, or set record.statistics to a larger number of steps";
  if (what == "batches") return "set record.batch to a larger number of steps, or record.batch.bytes to fewer bytes";
  return "write to a faster disk";
}

bool tellsOfTheRun(const Event& event) {
  return std::holds_alternative<RunBegan>(event.body) || std::holds_alternative<RunNamed>(event.body) ||
         std::holds_alternative<RunEnded>(event.body) || std::holds_alternative<AlertRaised>(event.body) ||
         std::holds_alternative<TakenBack>(event.body) || std::holds_alternative<Lost>(event.body);
}

}  // namespace

void EventQueue::countLost(std::int64_t run, const std::string& what, std::int64_t amount, std::int64_t step) {
  lostTotal_ += amount;
  if (what == "steps") lostSteps_ += amount;
  const std::string reason = failure_.empty() ? std::string(kFullQueue) : failure_;
  Lost& lost = lost_[{run, what, reason}];
  lost.what = what;
  lost.reason = reason;
  lost.advice = failure_.empty() ? adviceFor(what) : "remove what kept the file from being written";
  lost.amount += amount;
  if (step < 0) return;
  lost.firstStep = lost.firstStep < 0 ? step : std::min(lost.firstStep, step);
  lost.lastStep = std::max(lost.lastStep, step);
}

void EventQueue::waitForRoom(std::unique_lock<std::mutex>& lock, std::size_t bytes, std::chrono::milliseconds patience) {
  const auto pointless = [this] { return closed_ || stopped_ || !failure_.empty(); };
  if (hasRoom(bytes) || pointless() || impatient_) return;
  const auto begin = std::chrono::steady_clock::now();
  ++waits_;
  ++roomWanted_;
  changed_.notify_all();  // the writer begins at once
  impatient_ = !changed_.wait_for(lock, patience, [&] { return hasRoom(bytes) || pointless(); });
  --roomWanted_;
  waitedNs_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

void EventQueue::push(Event event, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (patience.count() > 0) waitForRoom(lock, event.bytes, patience);
  if (closed_ || stopped_) {
    ++lostTotal_;
    lostSteps_ += std::holds_alternative<StepDone>(event.body) ? 1 : 0;
    return;
  }
  // Who waits may hand over what is larger than the queue, once nothing else is in it.
  const bool full = patience.count() > 0 ? !hasRoom(event.bytes) : bytes_ + event.bytes > limitBytes_;
  if (full) {
    if (auto* stats = std::get_if<StatsTaken>(&event.body)) return countLost(event.run, "tensor_stats", 1, stats->step);
    if (auto* ranks = std::get_if<RanksStepped>(&event.body)) {
      for (RankStep& rank : ranks->ranks) {
        if (rank.spanCount == 0) continue;
        countLost(event.run, "spans", rank.spanCount, rank.step);
        event.bytes -= std::min(event.bytes, rank.spans.size());
        rank.spanCount = 0;
        rank.spans.clear();
      }
    }
    if (auto* step = std::get_if<StepDone>(&event.body)) {
      if (bytes_ > 2 * limitBytes_) return countLost(event.run, "steps", 1, step->step.step());
      snapshot::StepRecord& record = step->step;
      if (step->spanCount > 0) countLost(event.run, "spans", step->spanCount, record.step());
      if (record.has_device()) countLost(event.run, "device work", record.device().records_size(), record.step());
      if (record.inputs_size() > 0) countLost(event.run, "batches", 1, record.step());
      if (record.statistics_size() > 0) countLost(event.run, "tensor_stats", record.statistics_size(), record.step());
      const std::size_t before = record.ByteSizeLong() + step->spans.size();
      record.clear_inputs();
      record.clear_row_losses();
      record.clear_device();
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

std::deque<Event> EventQueue::take(std::chrono::milliseconds age) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !events_.empty() || (hurryUntil_ > done_ && !lost_.empty()); });
  if (!events_.empty())
    changed_.wait_until(lock, oldest_ + age,
                        [&] { return closed_ || hurryUntil_ > done_ || roomWanted_ > 0 || bytes_ > limitBytes_ / 2; });
  // A gap belongs to the run that has it, which may begin in this very batch.
  std::deque<Event> taken = std::exchange(events_, {});
  for (auto& [key, lost] : lost_) {
    ++pushed_;
    taken.push_back(Event{std::get<0>(key), 0, std::move(lost)});
  }
  lost_.clear();
  return taken;
}

void EventQueue::failed(std::deque<Event> events, std::string reason) {
  const std::lock_guard lock(mutex_);
  failure_ = std::move(reason);
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
  failure_.clear();
  impatient_ = false;
  bytes_ = 0;
  for (const Event& event : events_) bytes_ += event.bytes;
  changed_.notify_all();
}

void EventQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (Event& event : events_) {
    if (const auto* step = std::get_if<StepDone>(&event.body)) {
      countLost(event.run, "steps", 1, step->step.step());
      if (step->spanCount > 0) countLost(event.run, "spans", step->spanCount, step->step.step());
    } else if (tellsOfTheRun(event)) {
      lastWords_.push_back(std::move(event));
    } else {
      ++lostTotal_;
    }
  }
  events_.clear();
  bytes_ = 0;
  changed_.notify_all();
}

std::deque<Event> EventQueue::lastWords() {
  const std::lock_guard lock(mutex_);
  std::deque<Event> words = std::exchange(lastWords_, {});
  for (auto& [key, lost] : std::exchange(lost_, {})) words.push_back(Event{std::get<0>(key), 0, lost});
  return words;
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

std::int64_t EventQueue::lostSteps() const {
  const std::lock_guard lock(mutex_);
  return lostSteps_;
}

std::int64_t EventQueue::waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

std::int64_t EventQueue::waitedNs() const {
  const std::lock_guard lock(mutex_);
  return waitedNs_;
}

std::int64_t EventQueue::lostTotal() const {
  const std::lock_guard lock(mutex_);
  return lostTotal_;
}

}  // namespace stepscope::storage
