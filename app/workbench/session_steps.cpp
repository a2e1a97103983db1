// SPDX-License-Identifier: GPL-3.0-or-later
// Moving through steps in both directions.
#include "app/workbench/session.h"

namespace stepscope {
namespace {
constexpr qint64 kKeepEveryMs = 2000;
}

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

void Session::stopped() {
  const snapshot::Position& p = store_.position();
  selection_.setCurrentInstruction(p.in_step() ? p.instruction() : -1);
  if (p.in_step() && store_.plan() && p.instruction() < store_.plan()->size()) {
    selection_.select(Selection::ofInstruction(p.instruction()));
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
                  if (running_) runOn();
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
    move(std::move(request), tr("finishing the step"), [this] { settle({}); }, [this] { unfinished(); });
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
    move(std::move(request), tr("running to %1").arg(instruction), [this] { stopped(); });
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

void Session::rewind(std::int64_t step) {
  if (refuse()) return;
  const auto there = [this, step] {
    store_.dropStepsFrom(step);
    ring_.dropAfter(step);
    std::erase_if(edits_, [step](const Edit& e) { return e.step > step || (e.step == step && e.instruction >= 0); });
    stopped();
    keepState();
  };
  if (const auto kept = ring_.exactly(step)) {
    loadKept(*kept, there);
    return;
  }
  snapshot::Request request;
  request.mutable_rewind()->set_step(step);
  move(std::move(request), tr("rewinding to step %1").arg(step), there);
}

void Session::train(std::int64_t steps) {
  if (refuse()) return;
  const auto go = [this, steps] {
    snapshot::Request request;
    request.mutable_train()->set_steps(steps);
    request.mutable_train()->set_record(true);
    running_ = true;
    emit busyChanged();
    const auto ended = [this] {
      running_ = false;
      settle({});
    };
    move(std::move(request), tr("training"), ended, [this, ended] {
      if (client_.alive()) ended();
    });
  };
  if (!store_.position().in_step()) {
    go();
    return;
  }
  snapshot::Request finish;
  finish.mutable_finish_step();
  const auto finished = [this, go] {
    // Options that waited for the end of the step change the plan, which is read before it runs at full speed.
    if (optionsTouched_)
      settle([this, go] { inStep(go); });
    else
      go();
  };
  move(std::move(finish), tr("finishing the step"), finished, [this] { unfinished(); });
}

void Session::pause() {
  running_ = false;
  emit busyChanged();
  client_.cancelAll();
}

void Session::keepState() {
  if (store_.position().in_step() || !store_.plan() || replaying_) return;
  if (store_.plan()->plan().persistent_bytes() > kRingBytes / 2) return;
  // A run over many steps keeps one now and then; what lies between is repeated.
  if (running_ && sinceKept_.isValid() && sinceKept_.elapsed() < kKeepEveryMs) return;
  const QString path = ring_.freshPath();
  if (path.isEmpty()) return;
  sinceKept_.start();
  const std::int64_t step = store_.position().step();
  snapshot::Request request;
  request.mutable_save_state()->set_path(path.toStdString());
  client_.request(
      std::move(request), tr("keeping the state"),
      [this, step, path, edits = edits_.size()](const Delivery& d) {
        if (d.response->done() && !d.response->has_error()) ring_.add(step, path, edits);
      },
      true);
}

}  // namespace stepscope
