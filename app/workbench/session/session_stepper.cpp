// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_stepper.h"

#include <algorithm>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/script_place.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_rewind.h"
#include "app/workbench/session/session_trainer.h"
#include "app/workbench/session/stop_selection.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

// Whether a step at full speed has the times of its instructions too, as one by hand has.
bool recordsInstructions(const SnapshotStore& store) {
  const auto& all = store.options();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& option) { return option.name() == "record" && option.value() == "instructions"; });
}

}  // namespace

void SessionStepper::inStep(Then then) {
  if (store_.position().in_step()) {
    then();
    return;
  }
  snapshot::Request request;
  request.mutable_begin_step();
  link_.move(
      std::move(request), QStringLiteral("beginning step %1").arg(store_.position().step()),
      [this, then] {
        parts_.desires.stepBegan();
        then();
      },
      [this] { dropWaiting(); });
}

void SessionStepper::stopped(std::optional<int> asked) {
  const snapshot::Position& p = store_.position();
  selection_.setCurrentInstruction(p.in_step() ? p.instruction() : -1);
  if (!p.in_step()) {
    stops_ = {};
  } else if (!parts_.rewind.replaying() && p.instruction() > 0) {
    if (stops_.count++ == 0) stops_.first = p.instruction();
    if (p.breakpoint() != 0 && std::find(stops_.breaks.begin(), stops_.breaks.end(), p.stopped_by()) == stops_.breaks.end())
      stops_.breaks.push_back(p.stopped_by());
  }
  if (p.in_step() && p.breakpoint() != 0) dropWaiting();
  if (p.in_step() && p.breakpoint() != 0 && !parts_.rewind.replaying()) {
    using B = snapshot::Breakpoint;
    const auto& all = store_.breakpoints();
    const auto at = std::find_if(all.begin(), all.end(), [&p](const B& b) { return b.id() == p.breakpoint(); });
    const bool ofValues =
        at != all.end() && p.instruction() > 0 &&
        (at->condition_case() == B::kNan || at->condition_case() == B::kNewInf || at->condition_case() == B::kPredicate);
    if (ofValues) selection_.select(whatBroke(store_, *at, p.instruction() - 1));
    emit session_.brokeAt(format::visible(p.stopped_by()), ofValues ? p.instruction() - 1 : -1);
    if (ofValues) return;
  }
  if (!p.in_step() || atPlace(p) || !store_.plan() || store_.plan()->size() == 0) return;
  const int next = p.instruction(), ran = next - 1;
  if (asked == next && (selection_.selection().instruction == next || selection_.selection().instruction == ran)) return;
  if (ran >= 0 && p.breakpoint() == 0 && asked != next) {
    selection_.select(Selection::ofInstruction(ran));
  } else if (next < store_.plan()->size()) {
    selection_.select(aboutToRun(*store_.plan(), next));
  }
}

void SessionStepper::run(bool backwards) {
  if (link_.refuse()) return;
  if (backwards) {
    if (!store_.position().in_step()) {
      emit session_.note(QStringLiteral("Between steps; rewind goes to an earlier step"));
      return;
    }
    if (store_.position().instruction() == 0) {
      emit session_.note(QStringLiteral("The begin of step %1; Rewind to step… goes to an earlier one")
                             .arg(format::count(store_.position().step())));
      return;
    }
    snapshot::Request request;
    request.mutable_run_to_break()->set_backwards(true);
    link_.move(std::move(request), QStringLiteral("running backwards"), [this] { stopped(); });
    return;
  }
  run_.on = true;
  emit session_.busyChanged();
  runOn();
}

void SessionStepper::runOn() {
  // Where only values are watched, whole steps run at full speed; one with such a number, or where a condition holds, is
  // walked through.
  if (!store_.position().in_step() && parts_.trainer.breaksOnValuesOnly()) {
    run_.everyValue = !run_.goal;
    parts_.trainer.trainOn(run_.goal.value_or(kForever));
    return;
  }
  inStep([this] {
    snapshot::Request request;
    request.mutable_run_to_break();
    link_.move(
        std::move(request), QStringLiteral("running"), [this] { ranToBreak(); }, [this] { stopped(); });
  });
}

void SessionStepper::ranToBreak() {
  const snapshot::Position& p = store_.position();
  const bool atEnd = p.in_step() && !atPlace(p) && store_.plan() && p.instruction() >= store_.plan()->size();
  const bool there = !p.in_step() && run_.goal && p.step() >= *run_.goal;
  if (p.breakpoint() != 0 || !run_.on || there || (p.in_step() && !atEnd)) {
    run_.on = false;
    run_.goal.reset();
    emit session_.busyChanged();
    stopped();
    return;
  }
  if (!p.in_step()) {
    parts_.trainer.keepState();
    runOn();
    return;
  }
  snapshot::Request finish;
  finish.mutable_finish_step();
  const auto settled = [this] {
    if (!run_.on) return;
    parts_.desires.catchUp([this] {
      if (run_.on) ranToBreak();
    });
  };
  link_.move(
      std::move(finish), QStringLiteral("finishing the step"), [this, settled] { settle(settled); },
      [this] { unfinished(); });
}

void SessionStepper::take(Move move) {
  if (!moving_ || (!link_.busy() && waiting_.empty())) return make(move);
  waiting_.push_back(std::move(move));
  if (waiting_.size() > 1) emit session_.note(QStringLiteral("%1 more to go; Esc drops them").arg(waiting_.size()));
}

void SessionStepper::make(const Move& move) {
  if (link_.refuse()) return dropWaiting();
  moving_ = true;
  move();
  becameIdle();  // at the start of a step there is no way back
}

void SessionStepper::becameIdle() {
  while (moving_ && !link_.busy() && !run_.on) {
    if (waiting_.empty() || !parts_.model.built()) return dropWaiting();
    const Move next = std::move(waiting_.front());
    waiting_.pop_front();
    next();
  }
}

void SessionStepper::dropWaiting() {
  waiting_.clear();
  if (!moving_ || link_.busy()) return;
  moving_ = false;
  emit session_.busyChanged();
}

void SessionStepper::step(int count) {
  take([this, count] { stepNow(count); });
}

void SessionStepper::stepPhase(bool backwards) {
  take([this, backwards] { stepPhaseNow(backwards); });
}

void SessionStepper::finishStep() {
  take([this] { finishStepNow(); });
}

void SessionStepper::stepNow(int count) {
  const snapshot::Position& p = store_.position();
  if (count < 0 && (!p.in_step() || p.instruction() <= 0)) {
    emit session_.note(QStringLiteral("At the start of the step; rewind goes to an earlier step"));
    return;
  }
  // A script goes on from the end of a call to what it does next.
  const bool goesOn = link_.client().host().attached();
  if (count > 0 && !goesOn && p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size()) {
    finishStepNow();
    return;
  }
  inStep([this, count] {
    snapshot::Request request;
    request.mutable_step()->set_count(count);
    link_.move(
        std::move(request), QStringLiteral("stepping"), [this] { stopped(); }, [this] { dropWaiting(); });
  });
}

void SessionStepper::stepPhaseNow(bool backwards) {
  const snapshot::Position& p = store_.position();
  if (backwards && (!p.in_step() || p.instruction() <= 0)) {
    emit session_.note(QStringLiteral("At the start of the step; rewind goes to an earlier step"));
    return;
  }
  if (!backwards && !atPlace(p) && p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size()) {
    finishStepNow();
    return;
  }
  inStep([this, backwards] {
    snapshot::Request request;
    request.mutable_step_phase()->set_backwards(backwards);
    link_.move(
        std::move(request), QStringLiteral("running the phase"), [this] { stopped(); }, [this] { dropWaiting(); });
  });
}

// As F5 runs it: at full speed where only values are watched from its begin, instruction by instruction otherwise.
void SessionStepper::finishStepNow() {
  const auto& all = store_.breakpoints();
  const bool breaks = std::any_of(all.begin(), all.end(), [](const snapshot::Breakpoint& b) { return b.enabled(); });
  if (!breaks || link_.client().host().attached()) return inStep([this] { commitStep(); });
  // Options that were set meanwhile change the plan, which is read when the step begins.
  if (!store_.position().in_step() && parts_.trainer.breaksOnValuesOnly() && !parts_.desires.optionsTouched() &&
      recordsInstructions(store_)) {
    return link_.move(
        SessionTrainer::fullSpeed(1, true), QStringLiteral("running step %1").arg(store_.position().step()),
        [this] { settle({}); }, [this] { unfinished(); });
  }
  inStep([this] {
    snapshot::Request request;
    request.mutable_run_to_break();
    link_.move(
        std::move(request), QStringLiteral("finishing the step"),
        [this] {
          const snapshot::Position& p = store_.position();
          const bool atEnd = p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size();
          if (atEnd && p.breakpoint() == 0) return commitStep();
          dropWaiting();
          stopped();
        },
        [this] { unfinished(); });
  });
}

void SessionStepper::commitStep() {
  snapshot::Request request;
  request.mutable_finish_step();
  link_.move(
      std::move(request), QStringLiteral("finishing the step"), [this] { settle({}); }, [this] { unfinished(); });
}

// A step that was cancelled while it finished stands where it came to.
void SessionStepper::unfinished() {
  run_.on = false;
  dropWaiting();
  emit session_.busyChanged();
  if (link_.client().alive()) settle({});
}

void SessionStepper::settle(Then then) {
  snapshot::Request state;
  if (link_.client().host().attached())
    state.mutable_hold();  // a script runs on until it is told
  else
    state.mutable_state();
  link_.move(std::move(state), QStringLiteral("reading the state"), [this, then] {
    stopped();
    parts_.trainer.keepState();
    if (then) then();
  });
}

void SessionStepper::runTo(int instruction) {
  if (link_.refuse()) return;
  inStep([this, instruction] {
    snapshot::Request request;
    request.mutable_run_to()->set_instruction(instruction);
    link_.move(std::move(request), QStringLiteral("running to %1").arg(instruction),
               [this, instruction] { stopped(instruction); });
  });
}

void SessionStepper::abandon() {
  if (link_.refuse() || !store_.position().in_step()) return;
  snapshot::Request request;
  request.mutable_abandon_step();
  const std::int64_t step = store_.position().step();
  link_.move(std::move(request), QStringLiteral("going back"), [this, step] {
    parts_.edits.stepAbandoned(step);
    stopped();
  });
}

}  // namespace stepscope
