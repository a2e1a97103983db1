// SPDX-License-Identifier: GPL-3.0-or-later
// Moving through steps in both directions.
#include <algorithm>
#include <utility>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr qint64 kKeepEveryMs = 2000;

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
    if (ofValues && at->condition_case() != B::kPredicate)
      tellOfNumber(at->condition_case() == B::kNan, p.instruction() - 1);
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

// It is found again among the alerts when the run went on.
void Session::tellOfNumber(bool nan, int instruction) {
  const auto* made = store_.plan() ? store_.plan()->instruction(instruction) : nullptr;
  if (!made || !store_.graph()) return;
  const QString reason = QString::fromStdString(store_.position().stopped_by());
  snapshot::Alert alert;
  alert.set_severity(snapshot::Alert::ERROR);
  alert.set_code(nan ? "nan" : "inf");
  alert.set_node(made->node());
  alert.set_value(made->outputs_size() > 0 ? made->outputs(0).value() : -1);
  for (const auto& output : made->outputs()) {
    const auto* value = store_.graph()->value(output.value());
    if (value && reason.endsWith('\'' + QString::fromStdString(value->name()) + '\'')) alert.set_value(output.value());
  }
  alert.set_instruction(instruction);
  alert.set_step(store_.position().step());
  const QString found = reason.section(QStringLiteral(": "), 1);
  alert.set_message(
      tr("%1, made by %2 %3").arg(found).arg(instruction).arg(QString::fromStdString(made->op())).toStdString());
  const auto told = [&alert](const snapshot::Alert& other) {
    return other.step() == alert.step() && other.message() == alert.message();
  };
  if (std::any_of(numbers_.begin(), numbers_.end(), told)) return;
  numbers_.push_back(alert);
  store_.addAlert(alert);
  emit alertRaised(alert);
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
  const snapshot::Position& p = store_.position();
  trainOn(p.step() + steps + (p.in_step() ? 1 : 0));
}

void Session::trainAtOnce(std::int64_t goal) {
  running_ = true;
  if (!waiting_.empty()) {
    sendOptions([this, goal] {
      if (running_) trainOn(goal);
    });
    return;
  }
  snapshot::Request request;
  request.mutable_train()->set_steps(goal - store_.position().step());
  request.mutable_train()->set_record(true);
  training_ = true;
  emit busyChanged();
  const auto ended = [this] {
    running_ = training_ = interrupted_ = false;
    settle({});
  };
  move(std::move(request), tr("training"), ended, [this, goal, ended] {
    training_ = false;
    if (!client_.alive()) return;
    if (!std::exchange(interrupted_, false) || !running_) {
      ended();
      return;
    }
    snapshot::Request state;
    state.mutable_state();
    move(std::move(state), tr("reading the state"), [this, goal] {
      sendOptions([this, goal] {
        if (running_) trainOn(goal);
      });
    });
  });
}

void Session::trainOn(std::int64_t goal) {
  const auto go = [this, goal] {
    if (goal > store_.position().step()) {
      trainAtOnce(goal);
    } else {
      running_ = false;
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
  this->request(std::move(request), tr("keeping the state"), [this, step, path, edits = edits_.size()](const Delivery& d) {
    if (d.response->done() && !d.response->has_error()) ring_.add(step, path, edits);
  });
}

}  // namespace stepscope
