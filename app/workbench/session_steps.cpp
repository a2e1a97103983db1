// SPDX-License-Identifier: GPL-3.0-or-later
// Moving through steps in both directions.
#include <algorithm>
#include <limits>
#include <utility>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr qint64 kKeepEveryMs = 2000;
constexpr qint64 kShareOfKeeping = 50;  // a state is kept no more often than a fiftieth of the time allows
constexpr qint64 kChunkMs = 200;
constexpr std::int64_t kForever = std::int64_t{1} << 60;

// The instruction with the input that was made last: what it makes itself is not there yet.
Selection aboutToRun(const PlanSnapshot& plan, int instruction) {
  Selection s = Selection::ofInstruction(instruction);
  int latest = -2;
  for (const auto& input : plan.instruction(instruction)->inputs()) {
    const int maker = plan.producerOfValue(input.value());
    if (input.value() < 0 || maker <= latest || maker >= instruction) continue;
    latest = maker;
    s.value = input.value();
  }
  return s;
}

}  // namespace

void Session::inStep(Then then) {
  if (store_.position().in_step()) {
    then();
    return;
  }
  snapshot::Request request;
  request.mutable_begin_step();
  move(std::move(request), tr("beginning step %1").arg(store_.position().step()), [this, then] {
    optionsTouched_ = false;  // what waited was taken
    then();
  });
}

void Session::stopped(std::optional<int> asked) {
  const snapshot::Position& p = store_.position();
  selection_.setCurrentInstruction(p.in_step() ? p.instruction() : -1);
  if (!p.in_step()) {
    stops_ = {};
  } else if (!replaying_ && p.instruction() > 0) {
    if (stops_.count++ == 0) stops_.first = p.instruction();
    if (p.breakpoint() != 0 && std::find(stops_.breaks.begin(), stops_.breaks.end(), p.stopped_by()) == stops_.breaks.end())
      stops_.breaks.push_back(p.stopped_by());
  }
  if (p.in_step() && p.breakpoint() != 0 && !replaying_) {
    using B = snapshot::Breakpoint;
    const auto& all = store_.breakpoints();
    const auto at = std::find_if(all.begin(), all.end(), [&p](const B& b) { return b.id() == p.breakpoint(); });
    const bool ofValues =
        at != all.end() && p.instruction() > 0 &&
        (at->condition_case() == B::kNan || at->condition_case() == B::kNewInf || at->condition_case() == B::kPredicate);
    if (ofValues) selection_.select(Selection::ofInstruction(p.instruction() - 1));
    emit brokeAt(format::visible(p.stopped_by()), ofValues ? p.instruction() - 1 : -1);
    if (ofValues) return;
  }
  if (!p.in_step() || !store_.plan() || store_.plan()->size() == 0) return;
  const int next = p.instruction(), ran = next - 1;
  if (asked == next && (selection_.selection().instruction == next || selection_.selection().instruction == ran)) return;
  if (ran >= 0 && p.breakpoint() == 0 && asked != next) {
    selection_.select(Selection::ofInstruction(ran));
  } else if (next < store_.plan()->size()) {
    selection_.select(aboutToRun(*store_.plan(), next));
  }
}

void Session::run(bool backwards) {
  if (refuse()) return;
  if (backwards) {
    if (!store_.position().in_step()) {
      emit note(tr("Between steps; rewind goes to an earlier step"));
      return;
    }
    snapshot::Request request;
    request.mutable_run_to_break()->set_backwards(true);
    move(std::move(request), tr("running backwards"), [this] { stopped(); });
    return;
  }
  running_ = true;
  emit busyChanged();
  runOn();
}

void Session::runOn() {
  // Where only numbers are watched, whole steps run at full speed; one that holds such a number is walked through.
  if (!store_.position().in_step() && breaksOnNumbersOnly()) {
    everyValue_ = true;
    trainOn(kForever);
    return;
  }
  inStep([this] {
    snapshot::Request request;
    request.mutable_run_to_break();
    move(
        std::move(request), tr("running"),
        [this] {
          const snapshot::Position& p = store_.position();
          const bool atEnd = p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size();
          if (p.breakpoint() != 0 || !running_ || (p.in_step() && !atEnd)) {
            running_ = false;
            emit busyChanged();
            stopped();
            return;
          }
          if (!p.in_step()) {
            keepState();
            runOn();
            return;
          }
          snapshot::Request finish;
          finish.mutable_finish_step();
          move(
              std::move(finish), tr("finishing the step"),
              [this] {
                settle([this] {
                  if (!running_) return;
                  const auto on = [this] {
                    if (running_) runOn();
                  };
                  if (waiting_.empty())
                    on();
                  else
                    sendOptions(on);
                });
              },
              [this] { unfinished(); });
        },
        [this] { stopped(); });
  });
}

void Session::step(int count) {
  if (refuse()) return;
  const snapshot::Position& p = store_.position();
  if (count < 0 && (!p.in_step() || p.instruction() <= 0)) {
    emit note(tr("At the start of the step; rewind goes to an earlier step"));
    return;
  }
  if (count > 0 && p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size()) {
    finishStep();
    return;
  }
  inStep([this, count] {
    snapshot::Request request;
    request.mutable_step()->set_count(count);
    move(std::move(request), tr("stepping"), [this] { stopped(); });
  });
}

void Session::stepPhase(bool backwards) {
  if (refuse()) return;
  const snapshot::Position& p = store_.position();
  if (backwards && (!p.in_step() || p.instruction() <= 0)) {
    emit note(tr("At the start of the step; rewind goes to an earlier step"));
    return;
  }
  if (!backwards && p.in_step() && store_.plan() && p.instruction() >= store_.plan()->size()) {
    finishStep();
    return;
  }
  inStep([this, backwards] {
    snapshot::Request request;
    request.mutable_step_phase()->set_backwards(backwards);
    move(std::move(request), tr("running the phase"), [this] { stopped(); });
  });
}

void Session::finishStep() {
  if (refuse()) return;
  inStep([this] {
    snapshot::Request request;
    request.mutable_finish_step();
    move(
        std::move(request), tr("finishing the step"), [this] { settle({}); }, [this] { unfinished(); });
  });
}

// A step that was cancelled while it finished stands where it came to.
void Session::unfinished() {
  running_ = false;
  emit busyChanged();
  if (client_.alive()) settle({});
}

void Session::settle(Then then) {
  snapshot::Request state;
  state.mutable_state();
  move(std::move(state), tr("reading the state"), [this, then] {
    stopped();
    keepState();
    if (then) then();
  });
}

void Session::runTo(int instruction) {
  if (refuse()) return;
  inStep([this, instruction] {
    snapshot::Request request;
    request.mutable_run_to()->set_instruction(instruction);
    move(std::move(request), tr("running to %1").arg(instruction), [this, instruction] { stopped(instruction); });
  });
}

void Session::abandon() {
  if (refuse() || !store_.position().in_step()) return;
  snapshot::Request request;
  request.mutable_abandon_step();
  const std::int64_t step = store_.position().step();
  move(std::move(request), tr("going back"), [this, step] {
    std::erase_if(edits_, [step](const Edit& e) { return e.step >= step && e.instruction >= 0; });
    stopped();
  });
}

void Session::rewindThen(std::int64_t step, Then then) {
  if (refuse()) return;
  const auto there = [this, step, then] {
    store_.takeBackFrom(step);
    ring_.dropAfter(step);
    std::erase_if(edits_, [step](const Edit& e) { return e.step > step || (e.step == step && e.instruction >= 0); });
    stopped();
    keepState();
    if (then) then();
  };
  if (const auto kept = ring_.exactly(step)) {
    loadKept(*kept, there);
    return;
  }
  snapshot::Request state;
  state.mutable_state();
  ask(std::move(state), tr("reading the state"), [this, step, there](const Delivery& d) {
    if (!d.response->has_state() || busy_) return;
    const auto& ring = d.response->state().ring();
    if (std::find(ring.begin(), ring.end(), step) == ring.end()) return repeatTo(step, there);
    snapshot::Request request;
    request.mutable_rewind()->set_step(step);
    move(std::move(request), tr("rewinding to step %1").arg(step), there);
  });
}

void Session::repeatTo(std::int64_t step, Then there) {
  const auto kept = ring_.newest(step);
  if (!kept) {
    emit problem(tr("rewind: no state is kept at or before step %1; the run has to begin again").arg(format::count(step)),
                 {});
    return;
  }
  snapshot::Position goal;
  goal.set_step(step);
  loadKept(*kept, [this, goal, kept, there] {
    store_.takeBackFrom(goal.step());
    replay(goal, kept->edits, there);
  });
}

void Session::goTo(std::int64_t step, int instruction) {
  if (running_) {
    wantedPlace_.emplace(step, instruction);
    pause();
    return;
  }
  if (refuse()) return;
  const snapshot::Position& p = store_.position();
  if (step > p.step() || (step == p.step() && !p.in_step() && instruction < 0)) {
    emit note(tr("Step %1 has not run yet").arg(format::count(step)));
    return;
  }
  const auto there = [this, instruction] {
    if (instruction < 0) return;
    inStep([this, instruction] {
      snapshot::Request request;
      request.mutable_run_to()->set_instruction(instruction + 1);
      move(std::move(request), tr("running to %1").arg(instruction + 1), [this, instruction] {
        stopped(instruction + 1);
        selection_.select(Selection::ofInstruction(instruction));
      });
    });
  };
  if (step == p.step())
    there();
  else
    rewindThen(step, there);
}

void Session::train(std::int64_t steps) {
  if (refuse()) return;
  const snapshot::Position& p = store_.position();
  trainOn(p.step() + steps + (p.in_step() ? 1 : 0));
}

// What a worker that dies costs is at most the time between two states; the rest is repeated from the last one.
qint64 Session::keepEveryMs() const { return std::max(kKeepEveryMs, kShareOfKeeping * keepMs_); }

// In requests of about a quarter of a second: the next one is sent when the steps of the last have been taken in, so that a
// fast model never runs ahead of the window.
void Session::trainAtOnce(std::int64_t goal) {
  running_ = true;
  trainGoal_ = goal;
  if (!waiting_.empty()) {
    interrupted_ = false;
    sendOptions([this, goal] {
      if (running_) trainOn(goal);
    });
    return;
  }
  const std::int64_t left = goal - store_.position().step();
  const std::int64_t steps = std::min(left, chunk_);
  snapshot::Request request;
  request.mutable_train()->set_steps(steps);
  request.mutable_train()->set_record(true);
  request.mutable_train()->set_breaks(true);
  request.mutable_train()->set_values(everyValue_);
  if (!std::exchange(training_, true)) emit busyChanged();
  sinceChunk_.start();
  const auto ended = [this] {
    running_ = training_ = interrupted_ = everyValue_ = false;
    trainGoal_.reset();
    settle({});
  };
  const auto taken = [this, goal, steps, ended] {
    const qint64 took = std::max<qint64>(1, sinceChunk_.elapsed());
    chunk_ = std::clamp<std::int64_t>(steps * kChunkMs / took, 1, 4 * chunk_);
    const snapshot::Position& p = store_.position();
    const auto& records = store_.steps();
    const std::int64_t next = records.empty() ? p.step() : records.back()->step() + 1;
    if (!running_ || next >= goal || next <= p.step() || p.in_step()) return ended();
    const auto on = [this, goal] {
      keepState();
      trainAtOnce(goal);
    };
    if (!store_.watched().empty()) {
      snapshot::Request state;  // with the watched values
      state.mutable_state();
      move(std::move(state), tr("reading the state"), on, ended);
      return;
    }
    // The steps that came say where it stands.
    snapshot::Position between;
    between.set_step(next);
    store_.setPosition(between);
    on();
  };
  move(std::move(request), tr("training"), taken, [this, goal, ended] {
    if (!client_.alive()) {
      training_ = everyValue_ = false;
      return;
    }
    if (!std::exchange(interrupted_, false) || !running_) {
      ended();
      return;
    }
    training_ = false;
    snapshot::Request state;
    state.mutable_state();
    move(std::move(state), tr("reading the state"), [this, goal] {
      sendOptions([this, goal] {
        if (running_) trainOn(goal);
      });
    });
  });
}

bool Session::breaksOnNumbersOnly() const {
  const auto& all = store_.breakpoints();
  return std::all_of(all.begin(), all.end(), [](const snapshot::Breakpoint& b) {
    return !b.enabled() || b.condition_case() == snapshot::Breakpoint::kNan ||
           b.condition_case() == snapshot::Breakpoint::kNewInf;
  });
}

void Session::trainOn(std::int64_t goal) {
  const auto go = [this, goal] {
    if (goal > store_.position().step()) {
      trainAtOnce(goal);
    } else {
      running_ = false;
      trainGoal_.reset();
      settle({});
    }
  };
  if (!store_.position().in_step()) {
    go();
    return;
  }
  snapshot::Request finish;
  finish.mutable_finish_step();
  const auto finished = [this, go] {
    settle([this, go] {
      // Options that waited for the end of the step change the plan, which is read before it runs at full speed.
      if (optionsTouched_)
        inStep(go);
      else
        go();
    });
  };
  move(std::move(finish), tr("finishing the step"), finished, [this] { unfinished(); });
}

void Session::pause() {
  running_ = false;
  trainGoal_.reset();
  emit busyChanged();
  client_.cancelAll();
}

void Session::keepState() {
  if (store_.position().in_step() || !store_.plan() || replaying_) return;
  if (store_.plan()->plan().persistent_bytes() > kRingBytes / 2) return;
  // A run over many steps keeps one now and then; what lies between is repeated.
  if (running_ && sinceKept_.isValid() && sinceKept_.elapsed() < keepEveryMs()) return;
  const QString path = ring_.freshPath();
  if (path.isEmpty()) return;
  sinceKept_.start();
  const std::int64_t step = store_.position().step();
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  this->request(std::move(request), tr("keeping the state"), [this, step, path, edits = edits_.size()](const Delivery& d) {
    keepMs_ = sinceKept_.elapsed();
    if (d.response->done() && !d.response->has_error()) ring_.add(step, path, edits);
  });
}

}  // namespace stepscope
