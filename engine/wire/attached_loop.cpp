// The program's side, and what is kept of its passes; the window's side is in attached_moves.cpp.
#include "engine/wire/attached_loop.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/exec/touched.h"
#include "engine/step/breakpoint.h"

namespace stepscope {
namespace {

constexpr std::size_t kMostWaiting = 512;  // steps that the window has not taken
constexpr std::size_t kMostOpen = 64;      // calls whose backward pass may follow
constexpr std::int64_t kMeasureEvery = 64;

// A scalar float that is the only one among the results.
std::optional<double> lossOf(const Stepper& stepper) {
  if (!stepper.step().outer) return std::nullopt;
  const ValueId id = lossAmong(*stepper.step().outer, stepper.graph());
  if (!id) return std::nullopt;
  const auto contents = stepper.executor().read(id);
  return contents ? std::optional(elementAsDouble(contents->view(), 0)) : std::nullopt;
}

}  // namespace

ValueId lossAmong(const OuterStep& outer, const Graph& graph) {
  ValueId found;
  for (const auto& [name, id] : outer.outputs) {
    const ValueType& type = graph.value(id).type;
    if (!isFloating(type.dtype) || !type.shape || !type.shape->empty()) continue;
    if (found) return {};
    found = id;
  }
  return found;
}

AttachedLoop::AttachedLoop() : process_(getpid()) {}

bool AttachedLoop::inThisProcess() const { return getpid() == process_; }

bool AttachedLoop::listens() const { return window_ && inThisProcess(); }

bool AttachedLoop::enter() {
  if (!inThisProcess()) return false;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !window_ || (inside_ == 0 && !reading_ && wanting_ == 0); });
  ++inside_;
  owner_ = std::this_thread::get_id();
  return true;
}

void AttachedLoop::leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
  changed_.notify_all();
}

bool AttachedLoop::mayPass(int instruction) const {
  if (!window_ || !holding_) return true;
  return (allow_.anyCall || allow_.call == pass_.call) && instruction < allow_.until;
}

bool AttachedLoop::stands() const {
  return held_ && (place_.empty() ? !mayPass(at_) : window_ && holding_ && !allow_.given);
}

bool AttachedLoop::stepsPlaces() const { return holds_ && inThisProcess(); }

void AttachedLoop::place(std::string what) {
  if (!stepsPlaces()) return;
  std::unique_lock lock(mutex_);
  if (!window_ || !holding_ || inPass_ || held_ || allow_.places) return;
  place_ = std::move(what);
  at_ = lastEnd_;
  held_ = true;
  ++stops_;
  allow_ = {};
  changed_.notify_all();
  changed_.wait(lock, [&] { return !reading_ && !stands(); });
  held_ = false;
  place_.clear();
  stoppedBy_.clear();
  stoppedAt_ = 0;
}

// Waits until the pass may go on.
void AttachedLoop::gate(std::unique_lock<std::mutex>& lock, int instruction) {
  at_ = instruction;
  if (mayPass(instruction)) return;
  pass_.stepper->standBefore(instruction);
  held_ = true;
  ++stops_;
  allow_ = {};
  changed_.notify_all();
  changed_.wait(lock, [&] { return !reading_ && mayPass(instruction); });
  held_ = false;
  stoppedBy_.clear();
  stoppedAt_ = 0;
}

void AttachedLoop::look() {
  holds_ = window_ && (holding_ || watchesNumbers_);
  looks_ = holds_ || (window_ && !watched_.empty());
}

void AttachedLoop::begins(Session& session, const WatchedPass& pass) {
  std::unique_lock lock(mutex_);
  if (!window_) return;
  pass_ = pass;
  inPass_ = true;
  at_ = pass.begin;
  toldSpans_ = 0;
  const std::size_t values = pass.stepper->graph().valueCapacity();
  if (pass.begin == 0 || known_.told.size() != values) known_.forget(values);
  shown_ = {&session, pass.plans, pass.stepper};
  if (pass.begin == 0) {
    OpenCall& call = open_[pass.call];
    call.begin = monotonicNs();
    call.watched = watched_;
    call.watched.begin(steps_);
    if (open_.size() > kMostOpen) open_.erase(open_.begin());
  }
  if (holding_ && allow_.anyCall) allow_.until = pass.stepper->count();
  changed_.notify_all();
}

void AttachedLoop::before(int instruction) {
  if (!looks_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(mutex_);
  if (!inPass_) return;
  if (holding_ && allow_.breaks && mayPass(instruction) && pointed_ == pass_.plans) {
    stoppedBy_ = breakBefore(pass_.stepper->executor(), breakpoints_, instruction, &stoppedAt_);
    if (!stoppedBy_.empty()) allow_ = {};
  }
  gate(lock, instruction);
}

void AttachedLoop::after(int instruction) {
  if (!looks_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(mutex_);
  if (!inPass_) return;
  const auto call = open_.find(pass_.call);
  if (call != open_.end() && pointed_ == pass_.plans)
    call->second.watched.after(pass_.stepper->executor(), instruction,
                               pass_.stepper->executor().conditionsHold(instruction));
  const bool breaks = holding_ ? allow_.breaks : watchesNumbers_;
  if (!breaks || known_.told.size() < pass_.stepper->graph().valueCapacity()) return;
  const std::vector<snapshot::Breakpoint> all = breakpoints_;
  lock.unlock();  // the session is this thread's
  int id = 0;
  std::string found = breakAfter(pass_.stepper->executor(), all, instruction, known_, &id);
  // Parameters are the script's: it changes them between two steps.
  if (found.empty()) found = breakOnRead(pass_.stepper->executor(), all, instruction, &id);
  if (found.empty()) return;
  lock.lock();
  stoppedBy_ = std::move(found);
  stoppedAt_ = id;
  holding_ = true;
  watchesNumbers_ = false;
  allow_ = {};
  look();
}

void AttachedLoop::ends(const WatchedPass& pass, bool failed) {
  std::unique_lock lock(mutex_);
  if (!inPass_) return;
  if (failed) {
    open_.erase(pass.call);
  } else {
    last_ = pass.call;
    lastEnd_ = pass.end;
    if (looks_) gate(lock, pass.end);
    pass.stepper->standBefore(pass.end);
    if (window_ && open_.contains(pass.call)) {
      OpenCall& call = open_[pass.call];
      call.spans.insert(call.spans.end(), pass.spans->begin(), pass.spans->end());
      if (pass.begin == 0) call.loss = lossOf(*pass.stepper);
      if (pass.last) {
        stepEnded(std::move(call));
        open_.erase(pass.call);
      }
    }
  }
  inPass_ = false;
  pass_ = {};
  changed_.notify_all();
}

std::int64_t AttachedLoop::measuredBytes(const Executor& executor) {
  auto& bytes = peaks_[pass_.plans.get()];
  if (bytes == 0 || steps_ % kMeasureEvery == 0) bytes = touchedPersistentBytes(executor) + executor.touchedBytes();
  return bytes + executor.dynamicBytes();
}

void AttachedLoop::stepEnded(OpenCall call) {
  const Executor& executor = pass_.stepper->executor();
  const Graph& graph = pass_.stepper->graph();
  snapshot::StepRecord record;
  record.set_warm_up(!peaks_.contains(pass_.plans.get()));
  record.set_peak_bytes(measuredBytes(executor));
  record.set_planned_bytes(executor.plannedBytes());
  record.set_step(steps_++);
  record.set_begin_ns(call.begin);
  record.set_ns(monotonicNs() - call.begin);
  record.set_has_loss(call.loss.has_value());
  record.set_loss(call.loss.value_or(0));
  if (!graph.inputs().empty())
    if (const auto dims = knownDims(*graph.value(graph.inputs().front()).type.shape); dims && !dims->empty())
      record.set_samples(dims->front());
  for (const Span& span : call.spans) {
    auto& s = *record.add_spans();
    s.set_instruction(span.instruction);
    s.set_node(executor.plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
  if (pointed_ == pass_.plans) {
    call.watched.commit(
        graph, [this](ValueId id) { return pass_.stepper->value(id); }, record);
    watched_ = std::move(call.watched);
    watchedStep_.set_step(record.step());
    *watchedStep_.mutable_statistics() = record.statistics();
  }
  if (ended_.size() == kMostWaiting) {
    ++lost_;
    ended_.pop_front();
  }
  ended_.push_back({std::move(record), shown_, std::exchange(lost_, 0)});
}

void AttachedLoop::forget(const Session& session) {
  const std::lock_guard lock(mutex_);
  for (Shown* shown : {&shown_, &told_})
    if (shown->session == &session) *shown = {};
  std::erase_if(ended_, [&](const Step& step) { return step.of.session == &session; });
  pointed_.reset();
}

}  // namespace stepscope
