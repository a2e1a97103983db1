// Stepping through one micro step both ways: breakpoints, the undo log, replay.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/train/breakpoint.h"
#include "engine/train/phase_scope.h"
#include "engine/train/session.h"
#include "engine/train/session_edit.h"
#include "engine/train/snapshots.h"
#include "engine/train/utf8.h"

namespace stepscope {
namespace {

constexpr const char* kCancelled = "cancelled";  // why a run stopped

}  // namespace

Status Session::beginStep() {
  if (!variant_ || !data_) return invalid("step: nothing was built; build first");
  SS_TRY(abandonStep());
  SS_TRY(applyOptions());
  ringWanted_ = true;
  SS_ASSIGN(batch_, data_->batch(state_.step));
  SS_TRY(useVariantFor(batch_));
  if (ring_.empty() || ring_.back().step != state_.step) remember();
  SS_TRY(feed(batch_));
  inStep_ = true;
  undo_.clear();
  position_ = 0;
  stepBegin_ = monotonicNs();
  beginNotes();
  lastSpans_.clear();
  stoppedBy_ = "step";
  expectedInf_.assign(variant_->graph.valueCapacity(), false);
  return {};
}

// State that is written over for the first time in this step is kept for the whole step; the undo log shares that copy.
Status Session::saveBeforeWrite(int instruction, bool undoable) {
  const Executor& executor = *variant_->executor;
  const std::size_t known = before_.size();
  for (const int b : executor.plan().instructions[static_cast<std::size_t>(instruction)].outputs) {
    if (b < 0) continue;
    const Buffer& root = executor.plan().buffers[static_cast<std::size_t>(executor.plan().root(b))];
    if (root.home != Home::kState) continue;
    const bool saved =
        std::any_of(before_.begin(), before_.end(), [&](const auto& entry) { return entry.first == root.value; });
    if (!saved) before_.emplace_back(root.value, state_.tensors.at(variant_->graph.value(root.value).name).clone());
  }
  if (!undoable) return {};
  const bool runs =
      executor.conditionsHold(instruction) &&
      (runOptions().update || !executor.plan().instructions[static_cast<std::size_t>(instruction)].updateEntry);
  if (!runs) {
    undo_.record(instruction, {}, {});
  } else if (executor.writtenMemory(instruction, written_)) {
    std::vector<UndoLog::Kept> kept;
    for (std::size_t k = known; k < before_.size(); ++k)
      kept.push_back({state_.tensors.at(variant_->graph.value(before_[k].first).name).data(), before_[k].second});
    undo_.record(instruction, written_, kept);
  } else {
    undo_.clear();
  }
  return {};
}

Status Session::restoreStepStart() {
  for (const auto& [id, tensor] : before_) {
    const Tensor target = state_.tensors.at(variant_->graph.value(id).name);
    if (target.bytes() > 0) std::memcpy(target.data(), tensor.data(), target.bytes());
  }
  before_.clear();
  undo_.clear();
  return {};
}

Status Session::abandonStep() {
  if (!inStep_) return {};
  SS_TRY(restoreStepStart());
  edits_.clear();
  inStep_ = false;
  position_ = 0;
  return {};
}

// Applies the edits that the user made when the next instruction was `instruction`; doing so twice changes nothing.
Status Session::applyEdits(int instruction) {
  for (const SessionEdit& edit : edits_)
    if (edit.position == instruction) SS_TRY(writeValue(edit.value, edit.contents.view()));
  return {};
}

Result<snapshot::Position> Session::runRange(int end, bool breaks, bool undoable) {
  Executor& executor = *variant_->executor;
  Executor::RunOptions options = runOptions();
  options.cancel = &cancelled_;
  std::vector<Span> spans;
  spans.reserve(static_cast<std::size_t>(std::max(0, end - position_)));
  options.spans = &spans;
  std::string reason;
  Status edited;
  int breakpointId = 0;
  const int start = position_;
  // Numbers are followed without stopping too: what is expected to be infinite later depends on what was before.
  const bool follow = breaks || std::any_of(breakpoints_.begin(), breakpoints_.end(),
                                            [](const auto& b) { return b.enabled() && b.new_inf(); });
  options.before = [&](int i) {
    if (!reason.empty()) return false;
    if (breaks && i != start) {
      reason = breakBefore(*variant_, breakpoints_, i, &breakpointId);
      if (!reason.empty()) return false;
    }
    edited = applyEdits(i);
    if (!edited) return false;
    // A run without breakpoints ends at `end`, so only the last instructions can be undone from there.
    return saveBeforeWrite(i, undoable && (breaks || i >= end - UndoLog::kInstructions)).has_value();
  };
  options.after = [&](int i) -> Status {
    noteAfter(i);
    if (!follow) return {};
    int id = 0;
    std::string found = breakAfter(*variant_, breakpoints_, i, expectedInf_, &id);
    if (!breaks) return {};
    reason = std::move(found);
    breakpointId = id;
    return {};
  };
  auto next = executor.run(position_, end, options);
  if (!next) {
    // The instruction that failed or was cancelled has not been counted; what ran before it stands.
    position_ = start + static_cast<int>(spans.size());
    if (undo_.reaches(position_, position_ + 1)) undo_.undoTo(position_);
    if (next.error().code != ErrorCode::kCancelled) return tl::make_unexpected(withDimHint(next.error()));
    reason = kCancelled;
    next = position_;
  }
  position_ = *next;
  SS_TRY(edited);
  lastSpans_.resize(std::min(lastSpans_.size(), static_cast<std::size_t>(start)));
  lastSpans_.insert(lastSpans_.end(), spans.begin(), spans.end());
  const int count = static_cast<int>(executor.plan().instructions.size());
  stoppedBy_ = !reason.empty() ? reason : position_ == count ? "end of step" : "step";
  stoppedAt_ = breakpointId;
  snapshot::Position answer = position();
  for (const Span& span : spans) {
    auto& s = *answer.add_spans();
    s.set_instruction(span.instruction);
    s.set_node(executor.plan().instructions[static_cast<std::size_t>(span.instruction)].node.index);
    s.set_begin_ns(span.begin);
    s.set_end_ns(span.end);
  }
  return answer;
}

// A short way back is undone. A long one is forward from the start of the step: parameters as they were, the same batch, the
// same random keys, the user's edits.
Result<snapshot::Position> Session::replayTo(int instruction) {
  if (undo_.reaches(instruction, position_)) {
    undo_.undoTo(instruction);
    position_ = instruction;
    lastSpans_.resize(std::min(lastSpans_.size(), static_cast<std::size_t>(instruction)));
    std::erase_if(edits_, [&](const SessionEdit& edit) { return edit.position > instruction; });
    stoppedBy_ = "step";
    stoppedAt_ = 0;
    return position();
  }
  SS_TRY(restoreStepStart());
  SS_TRY(feed(batch_));
  replayed_ += instruction;
  std::fill(expectedInf_.begin(), expectedInf_.end(), false);
  std::erase_if(edits_, [&](const SessionEdit& edit) { return edit.position > instruction; });
  position_ = 0;
  if (instruction > 0) {
    SS_ASSIGN(const snapshot::Position there, runRange(instruction, false));
    if (there.stopped_by() == kCancelled) return there;
  }
  SS_TRY(applyEdits(instruction));
  stoppedBy_ = "step";
  return position();
}

Result<snapshot::Position> Session::runTo(int instruction) {
  if (!inStep_) SS_TRY(beginStep());
  const int count = static_cast<int>(variant_->executor->plan().instructions.size());
  const int target = std::clamp(instruction, 0, count);
  if (target < position_) return replayTo(target);
  return runRange(target, false);
}

Result<snapshot::Position> Session::stepInstructions(int count) {
  if (!inStep_) SS_TRY(beginStep());
  return runTo(position_ + count);
}

Result<snapshot::Position> Session::runToBreak(bool backwards) {
  if (!inStep_) SS_TRY(beginStep());
  const int count = static_cast<int>(variant_->executor->plan().instructions.size());
  if (!backwards) return runRange(count, true);
  // The last break before the present place: replayed once to find it, once more to stand there.
  const int limit = position_;
  int found = 0;
  std::string reason;
  int id = 0;
  const std::vector<SessionEdit> edits = edits_;  // they belong to the way forward too
  SS_TRY(replayTo(0));
  edits_ = edits;
  replayed_ += limit;
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

Result<snapshot::Position> Session::stepPhase(bool backwards) {
  if (!inStep_) SS_TRY(beginStep());
  const ExecutionPlan& plan = variant_->executor->plan();
  const int count = static_cast<int>(plan.instructions.size());
  int target = backwards ? 0 : count;
  for (const int boundary : {0, plan.firstBackward, plan.firstOptimizer, count}) {
    if (backwards && boundary < position_) target = std::max(target, boundary);
    if (!backwards && boundary > position_) target = std::min(target, boundary);
  }
  return runTo(target);
}

Result<snapshot::StepRecord> Session::finishStep() {
  if (!inStep_) return step();
  SS_ASSIGN(const snapshot::Position end,
            runRange(static_cast<int>(variant_->executor->plan().instructions.size()), false, false));
  if (end.stopped_by() == kCancelled)
    return fail(ErrorCode::kCancelled,
                fmt::format("step: cancelled before instruction {}; it stands there and can go on", position_));
  snapshot::StepRecord record;
  fillRecord(record, stepBegin_, monotonicNs());
  notes_.finish(record);
  SS_TRY(commit());
  return record;
}

snapshot::Position Session::position() const {
  snapshot::Position p;
  p.set_in_step(inStep_);
  p.set_step(state_.step);
  p.set_instruction(inStep_ ? position_ : 0);
  p.set_stopped_by(stoppedBy_);
  p.set_breakpoint(stoppedAt_);
  if (inStep_ && loss_ && variant_ && variant_->executor->unavailable(loss_, position_).empty()) {
    p.set_loss(elementAsDouble(variant_->executor->view(loss_), 0));
    p.set_has_loss(true);
  }
  for (const ValueId id : watched_) {
    auto data = fetch(id, {}, {}, true, 0);
    if (data) *p.add_watched() = std::move(*data);
  }
  return p;
}

Status Session::setBreakpoints(std::vector<snapshot::Breakpoint> breakpoints) {
  int next = 1;
  for (const snapshot::Breakpoint& b : breakpoints) next = std::max(next, b.id() + 1);
  for (snapshot::Breakpoint& b : breakpoints) {
    if (b.id() == 0) b.set_id(next++);
    if (b.condition_case() == snapshot::Breakpoint::kPredicate) SS_TRY(parsePredicate(b.predicate()));
    if (b.condition_case() == snapshot::Breakpoint::CONDITION_NOT_SET)
      return invalid(fmt::format("breakpoint {}: no condition; expected one", b.id()));
  }
  breakpoints_ = std::move(breakpoints);
  tellOfIdlePredicates();
  return {};
}

// Not an error: another variant, or an option that a pass obeys, may bring the value back.
void Session::tellOfIdlePredicates() {
  if (!variant_) return;
  for (const snapshot::Breakpoint& b : breakpoints_) {
    if (!b.enabled() || b.condition_case() != snapshot::Breakpoint::kPredicate) continue;
    const auto predicate = parsePredicate(b.predicate());
    if (!predicate || variant_->graph.findValue(predicate->value)) continue;
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::WARNING);
    alert.set_code("breakpoint_without_value");
    alert.set_message(fmt::format("breakpoint {}: '{}' stops nowhere: the step that runs has no value '{}'", b.id(),
                                  b.predicate(), toUtf8(predicate->value)));
    alert.set_node(-1);
    raise(alert);
  }
}

}  // namespace stepscope
