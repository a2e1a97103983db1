// One micro step by hand: breakpoints, the undo log, replay.
#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "engine/build/round.h"
#include "engine/exec/device_times.h"
#include "engine/step/breakpoint.h"
#include "engine/step/stepper.h"
#include "engine/step/values.h"

namespace stepscope {
namespace {

constexpr const char* kCancelled = "cancelled";  // why a run stopped

}  // namespace

Status Stepper::begin(Batch batch) {
  abandon();
  SS_TRY(checkRound(options(), context_.state.counters));
  SS_TRY(findLossScale(batch));
  SS_TRY(feed(batch));
  batch_ = std::move(batch);
  inStep_ = true;
  undo_.clear();
  position_ = 0;
  context_.processor.begin();
  stepBegin_ = monotonicNs();
  beginNotes();
  lastSpans_.clear();
  watchers_.activity = {};
  stoppedBy_ = "step";
  stoppedAt_ = 0;
  judge_.expectNone(graph().valueCapacity());
  return {};
}

void Stepper::abandon() {
  if (!inStep_) return;
  context_.state.rollback();
  context_.watched.drop();
  ++context_.places;
  undo_.clear();
  edits_.clear();
  inStep_ = false;
  position_ = 0;
}

void Stepper::standBefore(int instruction) {
  position_ = instruction;
  place_ = context_.places;
}

bool Stepper::holds(ValueId id) const {
  const ValueRole role = graph().value(id).role;
  return place_ == context_.places || (role != ValueRole::kNodeOutput && role != ValueRole::kInput);
}

Result<TensorView> Stepper::value(ValueId id) const {
  if (!id || static_cast<std::size_t>(id.index) >= graph().valueCapacity())
    return fail(ErrorCode::kNotFound, fmt::format("value {}: no such value", id.index));
  if (!holds(id))
    return fail(ErrorCode::kNotFound,
                shownStep() < 0
                    ? "no step has run yet; run one to compute it"
                    : fmt::format("the values of step {} are gone: a step that was taken back, or another plan, took their "
                                  "memory; run a step",
                                  shownStep()));
  const Value& value = graph().value(id);
  const bool isState = value.role == ValueRole::kInitializer || value.role == ValueRole::kState;
  // What an earlier plan trained and this one does not read.
  if (isState && context_.state.contains(value.name) && !executor_->unavailable(id, position_).empty())
    return context_.state.read(value.name).view();
  return contentsAt(*executor_, id, position_);
}

Result<snapshot::Position> Stepper::runRange(int end, bool breaks, bool commits) {
  SS_TRY(context_.state.bring(executor_->device()));
  Executor::RunOptions run = runOptions();
  run.cancel = &context_.cancelled;
  run.collectives = context_.ranks ? &collectives_ : nullptr;
  std::vector<Span> spans;
  spans.reserve(static_cast<std::size_t>(std::max(0, end - position_)));
  run.spans = &spans;
  Activity activity;
  run.activity = &activity;
  std::string reason;
  Status edited;
  int breakpointId = 0;
  const int start = position_;
  // What the update writes over is kept where the step may end in its middle: collectives may fail; so may running
  // statistics that are made before they are written, and edits ahead, which keep what they are made in.
  const bool mayEnd = context_.ranks || changesCommits() ||
                      std::any_of(edits_.begin(), edits_.end(), [&](const StepEdit& edit) { return edit.position > start; });
  const int keepsBelow = commits && !mayEnd ? plan().firstOptimizer : INT_MAX;
  run.cancelBelow = std::max(keepsBelow, start + 1);
  watchers_.beginProgress();
  const auto& breakpoints = context_.breakpoints;
  // Numbers are followed without stopping too: what is expected to be infinite later depends on what was before.
  const bool follow = breaks || std::any_of(breakpoints.begin(), breakpoints.end(),
                                            [](const auto& b) { return b.enabled() && b.new_inf(); });
  run.before = [&](int i) {
    if (!reason.empty()) return false;
    if (breaks && i != start) {
      reason = breakBefore(*executor_, breakpoints, i, &breakpointId);
      if (!reason.empty()) return false;
    }
    edited = applyEdits(i);
    if (edited && i == plan().firstCommit && changesCommits()) edited = beforeCommits();
    if (!edited) return false;
    if (i == plan().firstOptimizer && followsNumbers()) judge_.judge(*executor_, true);  // what the update will read
    if (i >= keepsBelow && !executor_->savesState(i)) return true;
    // A run without breakpoints ends at `end`, so only the last instructions can be undone from there.
    return saveBeforeWrite(i, !commits && (breaks || i >= end - UndoLog::kInstructions)).has_value();
  };
  run.after = [&](int i) -> Status {
    noteAfter(i);
    watchers_.tellProgress(*executor_, i + 1);
    const bool waits = !run.update && plan().instructions[static_cast<std::size_t>(i)].updateEntry;
    if (!follow || waits || !executor_->conditionsHold(i)) return {};  // what it makes is not there
    int id = 0;
    std::string found = breakAfter(*executor_, breakpoints, i, judge_.known(), &id);
    if (!breaks) return {};
    reason = std::move(found);
    breakpointId = id;
    return {};
  };
  auto next = executor_->run(position_, end, run);
  if (!next) {
    // The instruction that failed or was cancelled has not been counted; what ran before it stands.
    position_ = start + static_cast<int>(spans.size());
    if (undo_.reaches(position_, position_ + 1)) undo_.undoTo(position_);
    if (next.error().code != ErrorCode::kCancelled) return tl::make_unexpected(step().request.explain(next.error()));
    reason = kCancelled;
    next = position_;
  }
  position_ = *next;
  SS_TRY(edited);
  lastSpans_.resize(std::min(lastSpans_.size(), static_cast<std::size_t>(start)));
  lastSpans_.insert(lastSpans_.end(), spans.begin(), spans.end());
  std::erase_if(watchers_.activity.records,
                [&](const ActivityRecord& record) { return record.id > static_cast<std::uint64_t>(start); });
  append(watchers_.activity, std::move(activity));
  stoppedBy_ = !reason.empty() ? reason : position_ == count() ? "end of step" : "step";
  stoppedAt_ = breakpointId;
  snapshot::Position answer = position();
  const bool placed = activityOf(executor_->device()) != nullptr;
  for (const Span& span : spans) {
    auto& s = *answer.add_spans();
    s.set_thread(placed ? rowOf(plan().instructions[static_cast<std::size_t>(span.instruction)]) : 0);
    s.set_instruction(span.instruction);
    s.set_node(plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
  return answer;
}

// A short way back is undone. A long one is forward from the start of the step: parameters as they were, the same batch, the
// same random keys, the user's edits.
Result<snapshot::Position> Stepper::replayTo(int instruction) {
  if (undo_.reaches(instruction, position_)) {
    undo_.undoTo(instruction);
    judge_.walksBack();
    position_ = instruction;
    lastSpans_.resize(std::min(lastSpans_.size(), static_cast<std::size_t>(instruction)));
    std::erase_if(edits_, [&](const StepEdit& edit) { return edit.position > instruction; });
    stoppedBy_ = "step";
    stoppedAt_ = 0;
    return position();
  }
  context_.state.rollback();
  undo_.clear();
  SS_TRY(feed(batch_));
  context_.replayed += instruction;
  judge_.expectNone(graph().valueCapacity());
  std::erase_if(edits_, [&](const StepEdit& edit) { return edit.position > instruction; });
  position_ = 0;
  if (instruction > 0) {
    SS_ASSIGN(const snapshot::Position there, runRange(instruction, false));
    if (there.stopped_by() == kCancelled) return there;
  }
  SS_TRY(applyEdits(instruction));
  stoppedBy_ = "step";
  return position();
}

Result<snapshot::Position> Stepper::replay(int instruction) {
  undo_.clear();
  return replayTo(instruction);
}

Result<snapshot::Position> Stepper::takeOver(const Stepper& other, std::vector<StepEdit> edits, int instruction) {
  context_.state.rollback();
  SS_TRY(begin(other.batch_));
  stepBegin_ = other.stepBegin_;
  edits_ = std::move(edits);
  SS_ASSIGN(snapshot::Position there, runTo(instruction));
  if (there.stopped_by() == kCancelled) return there;
  SS_TRY(applyEdits(position_));
  return position();
}

Result<snapshot::Position> Stepper::runTo(int instruction) {
  const int target = std::clamp(instruction, 0, count());
  if (target < position_) return replayTo(target);
  return runRange(target, false);
}

Result<snapshot::Position> Stepper::runToBreak(bool backwards) {
  if (!backwards) return runRange(count(), true);
  // The last break before the present place: replayed once to find it, once more to stand there.
  const int limit = position_;
  int found = 0;
  std::string reason;
  int id = 0;
  const std::vector<StepEdit> edits = edits_;  // they belong to the way forward too
  SS_TRY(replayTo(0));
  edits_ = edits;
  context_.replayed += limit;
  while (position_ < limit) {
    SS_ASSIGN(const snapshot::Position stop, runRange(limit, true));
    if (stop.stopped_by() == kCancelled) return stop;
    if (position_ < limit && stop.stopped_by() != "step" && stop.stopped_by() != "end of step") {
      found = position_;
      reason = stop.stopped_by();
      id = stop.breakpoint();
    } else if (position_ >= limit) {
      break;
    }
  }
  SS_ASSIGN(const snapshot::Position there, replayTo(found));
  if (there.stopped_by() == kCancelled) return there;
  stoppedBy_ = reason.empty() ? "start of step" : reason;
  stoppedAt_ = id;
  return position();
}

Result<snapshot::Position> Stepper::stepPhase(bool backwards) {
  int target = backwards ? 0 : count();
  for (const int boundary : {0, plan().firstBackward, plan().firstOptimizer, count()}) {
    if (backwards && boundary < position_) target = std::max(target, boundary);
    if (!backwards && boundary > position_) target = std::min(target, boundary);
  }
  return runTo(target);
}

Status Stepper::finish(snapshot::StepRecord& record) {
  SS_CHECK(inStep_);
  SS_ASSIGN(const snapshot::Position end, runRange(count(), false, true));
  if (end.stopped_by() == kCancelled)
    return fail(ErrorCode::kCancelled,
                fmt::format("step: cancelled before instruction {}; it stands there and can go on", position_));
  fillRecord(record, stepBegin_, monotonicNs());
  context_.notes.finish(record);
  return commit(record);
}

snapshot::Position Stepper::position() const {
  snapshot::Position p;
  p.set_in_step(inStep_);
  p.set_step(context_.state.counters.step);
  p.set_instruction(inStep_ ? position_ : 0);
  p.set_stopped_by(stoppedBy_);
  p.set_breakpoint(stoppedAt_);
  const ValueId loss = step().loss;
  if (inStep_ && loss && executor_->unavailable(loss, position_).empty()) {
    if (const auto contents = executor_->read(loss)) {
      p.set_loss(elementAsDouble(contents->view(), 0));
      p.set_has_loss(true);
    }
  }
  for (const WatchedValues::Watched& watched : context_.watched.all()) {
    const WatchedValues::Numbers* numbers = WatchedValues::newest(watched, position_);
    const bool present = numbers && numbers->step == shownStep() && numbers->statistics.histogram_size() > 0;
    auto data = fetchValue(*this, watched.value, {}, {}, !present, 0);
    if (!data) continue;  // the plan does not have it
    if (numbers && !data->has_statistics()) {
      *data->mutable_statistics() = numbers->statistics;
      data->set_step(numbers->step);
    }
    *p.add_watched() = std::move(*data);
  }
  return p;
}

}  // namespace stepscope
