// The window's side of AttachedLoop.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "engine/snapshot/utf8.h"
#include "engine/step/values.h"
#include "engine/wire/attached_loop.h"

namespace stepscope {
namespace {

Error cancelled() { return {ErrorCode::kCancelled, "loop: cancelled before it came to a gate; it is held at the next one"}; }

}  // namespace

void AttachedLoop::connect() {
  const std::lock_guard lock(mutex_);
  window_ = true;
  holding_ = watchesNumbers_ = cancelled_ = false;
  steps_ = lost_ = 0;
  allow_ = {};
  look();
}

void AttachedLoop::disconnect() {
  std::unique_lock lock(mutex_);
  window_ = holding_ = watchesNumbers_ = false;
  look();
  shown_ = told_ = {};
  pointed_.reset();
  breakpoints_.clear();
  watched_ = {};
  watchedStep_.Clear();
  open_.clear();
  ended_.clear();
  peaks_.clear();
  signatures_.clear();
  changed_.notify_all();
}

void AttachedLoop::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

void AttachedLoop::clearCancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = false;
}

Status AttachedLoop::read(const std::function<Status()>& work) {
  {
    std::unique_lock lock(mutex_);
    ++wanting_;
    changed_.wait(lock, [this] { return cancelled_ || inside_ == 0 || (held_ && inside_ == 1); });
    --wanting_;
    if (inside_ > 0 && !(held_ && inside_ == 1)) {
      changed_.notify_all();
      return tl::make_unexpected(cancelled());
    }
    reading_ = true;
  }
  const Status done = work();
  const std::lock_guard lock(mutex_);
  reading_ = false;
  changed_.notify_all();
  return done;
}

AttachedLoop::Shown AttachedLoop::told() const {
  const std::lock_guard lock(mutex_);
  return told_;
}

void AttachedLoop::tellPlanOf(const Step& step) {
  const std::lock_guard lock(mutex_);
  told_ = step.of;
}

ValueId AttachedLoop::toldLoss() const {
  const Shown shown = told();
  const auto* outer = shown.stepper && shown.stepper->step().outer ? &*shown.stepper->step().outer : nullptr;
  return outer ? lossAmong(*outer, shown.stepper->graph()) : ValueId{};
}

std::int64_t AttachedLoop::steps() const {
  const std::lock_guard lock(mutex_);
  return steps_;
}

bool AttachedLoop::tellShown() {
  const std::lock_guard lock(mutex_);
  if (!shown_.plans) return false;
  const bool another = told_.plans != shown_.plans;
  told_ = shown_;
  return another;
}

// Plans of two files may have inputs of the same names and extents.
std::string AttachedLoop::signatureOf(const Shown& shown) {
  const std::lock_guard lock(mutex_);
  for (const auto& [plans, signature] : signatures_)
    if (plans.lock() == shown.plans) return signature;
  const std::string plain = shown.plans->variant->signature.text();
  std::string distinct = plain;
  const auto taken = [&] {
    return std::ranges::any_of(signatures_, [&](const auto& other) { return other.second == distinct; });
  };
  for (int n = 2; taken(); ++n) distinct = fmt::format("{} ({})", plain, n);
  signatures_.emplace_back(shown.plans, distinct);
  return distinct;
}

Status AttachedLoop::waitForPlan() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return cancelled_ || shown_.plans; });
  if (!shown_.plans) return tl::make_unexpected(cancelled());
  return {};
}

Stepper* AttachedLoop::values() const {
  const std::lock_guard lock(mutex_);
  return told_.plans && told_.plans == shown_.plans ? shown_.stepper : nullptr;
}

// A step forwards, or another gate.
Status AttachedLoop::waitForStop(std::unique_lock<std::mutex>& lock, const std::function<bool()>& also) {
  const std::uint64_t before = stops_;
  if (stands()) return {};
  changed_.notify_all();
  changed_.wait(lock, [&] { return cancelled_ || stops_ != before || (also && also()); });
  if (stops_ != before || (also && also())) return {};
  allow_ = {};
  return tl::make_unexpected(cancelled());
}

Status AttachedLoop::begin() {
  std::unique_lock lock(mutex_);
  holding_ = true;
  allow_ = {};
  look();
  return waitForStop(lock);
}

Status AttachedLoop::hold() {
  std::unique_lock lock(mutex_);
  holding_ = true;
  watchesNumbers_ = false;
  allow_ = {};
  look();
  changed_.wait(lock, [this] { return held_ || !inPass_; });
  return {};
}

Status AttachedLoop::runTo(int instruction, bool breaks) {
  std::unique_lock lock(mutex_);
  holding_ = true;
  allow_ = {breaks, pass_.call, instruction, breaks, breaks, true};
  look();
  return waitForStop(lock);
}

Status AttachedLoop::leavePlace(bool toPass) {
  std::unique_lock lock(mutex_);
  holding_ = true;
  allow_ = {.places = toPass, .given = true};
  look();
  return waitForStop(lock);
}

bool AttachedLoop::atPlace() const {
  const std::lock_guard lock(mutex_);
  return held_ && !place_.empty();
}

Status AttachedLoop::finish() {
  std::unique_lock lock(mutex_);
  holding_ = true;
  const bool another = !place_.empty() && !open_.contains(last_);  // the call that it followed has ended
  if (held_) allow_ = {another, place_.empty() ? pass_.call : last_, INT_MAX, false, true, true};
  look();
  const std::int64_t before = steps_;
  return waitForStop(lock, [this, before] { return steps_ != before && !inPass_; });
}

void AttachedLoop::letGo(bool watchNumbers) {
  const std::lock_guard lock(mutex_);
  holding_ = false;
  watchesNumbers_ = watchNumbers;
  allow_ = {};
  look();
  changed_.notify_all();
}

bool AttachedLoop::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

int AttachedLoop::instruction() const {
  const std::lock_guard lock(mutex_);
  return at_;
}

int AttachedLoop::count() const {
  const std::lock_guard lock(mutex_);
  return held_ && inPass_ ? pass_.stepper->count() : 0;
}

int AttachedLoop::phaseEnd() const {
  const std::lock_guard lock(mutex_);
  if (!held_ || !inPass_) return 0;
  return at_ < pass_.end ? pass_.end : pass_.stepper->count();
}

void AttachedLoop::giveBack(Step step) {
  const std::lock_guard lock(mutex_);
  ended_.push_front(std::move(step));
}

bool AttachedLoop::stepsWait() const {
  const std::lock_guard lock(mutex_);
  return !ended_.empty();
}

snapshot::Position AttachedLoop::position() {
  const std::lock_guard lock(mutex_);
  snapshot::Position position;
  position.set_step(held_ || ended_.empty() ? steps_ : ended_.front().record.step());
  position.set_in_step(held_);
  const Stepper* const held = held_ && place_.empty() ? pass_.stepper : nullptr;
  if (pointed_ && pointed_ == (held ? pass_.plans : told_.plans)) addWatched(held, position);
  if (!held_) return position;
  position.set_instruction(at_);
  if (!place_.empty()) {
    position.set_stopped_by(fmt::format("script: {}", toUtf8(place_)));
    return position;
  }
  position.set_stopped_by(!stoppedBy_.empty() ? stoppedBy_ : at_ == pass_.stepper->count() ? "end of step" : "step");
  position.set_breakpoint(stoppedAt_);
  const auto& all = *pass_.spans;
  for (; toldSpans_ < all.size(); ++toldSpans_) {
    const Span& span = all[toldSpans_];
    auto& s = *position.add_spans();
    s.set_instruction(span.instruction);
    s.set_node(pass_.stepper->plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
  return position;
}

const WatchedValues& AttachedLoop::watchedNow() const {
  const auto call = open_.find(inPass_ ? pass_.call : last_);
  return call != open_.end() ? call->second.watched : watched_;
}

// While a pass is held its memory can be read: what is there all the time, and what a plan holds since before it was
// watched.
void AttachedLoop::addWatched(const Stepper* held, snapshot::Position& position) const {
  const Graph& graph = (held ? held : told_.stepper)->graph();
  for (const WatchedValues::Watched& watched : watchedNow().all()) {
    if (!watched.value || static_cast<std::size_t>(watched.value.index) >= graph.valueCapacity()) continue;
    const WatchedValues::Numbers* numbers = WatchedValues::newest(watched, held ? at_ : INT_MAX);
    snapshot::TensorData data;
    if (auto there = held ? fetchValue(*held, watched.value, {}, {}, !(numbers && numbers->step == steps_), 0)
                          : Result<snapshot::TensorData>(snapshot::TensorData()))
      data = std::move(*there);
    data.set_value(watched.value.index);
    data.set_name(toUtf8(graph.value(watched.value).name));
    data.set_dtype(std::string(dtypeName(graph.value(watched.value).type.dtype)));
    data.set_step(steps_);
    if (numbers && !data.has_statistics()) {
      *data.mutable_statistics() = numbers->statistics;
      data.set_step(numbers->step);
    }
    // What no instruction makes is read where a step ends.
    for (const snapshot::RecordedStatistics& read : watchedStep_.statistics()) {
      if (data.has_statistics() || read.value() != watched.value.index) continue;
      *data.mutable_statistics() = read.statistics();
      data.set_step(watchedStep_.step());
    }
    *position.add_watched() = std::move(data);
  }
}

void AttachedLoop::setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints) {
  const std::lock_guard lock(mutex_);
  int next = 1;
  for (const auto& b : breakpoints) next = std::max(next, b.id() + 1);
  for (auto& b : breakpoints)
    if (b.id() == 0) b.set_id(next++);
  if (pointed_ != told_.plans) watchAll({});
  pointed_ = told_.plans;
  breakpoints_ = std::move(breakpoints);
}

std::vector<snapshot::Breakpoint> AttachedLoop::breakpoints() const {
  const std::lock_guard lock(mutex_);
  return breakpoints_;
}

void AttachedLoop::watch(const std::vector<ValueId>& values) {
  const std::lock_guard lock(mutex_);
  if (pointed_ != told_.plans) watchAll({});  // numbers of another plan are of other values
  pointed_ = told_.plans;
  watchAll(values);
  look();
}

void AttachedLoop::watchAll(const std::vector<ValueId>& values) {
  if (values.empty()) watchedStep_.Clear();
  watched_.watch(values);
  for (auto& [number, call] : open_) call.watched.watch(values);
}

Result<std::optional<AttachedLoop::Step>> AttachedLoop::takeStep(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) changed_.wait(lock, [&] { return cancelled_ || stands() || !ended_.empty(); });
  if (!ended_.empty()) {
    std::optional<Step> step(std::move(ended_.front()));
    ended_.pop_front();
    return step;
  }
  if (!wait || stands()) return std::optional<Step>();
  return tl::make_unexpected(cancelled());
}

}  // namespace stepscope
