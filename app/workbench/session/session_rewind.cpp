// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_rewind.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_recovery.h"
#include "app/workbench/session/session_stepper.h"
#include "app/workbench/session/session_trainer.h"
#include "views/common/format.h"

namespace stepscope {

// What was recorded of the step and of later ones no longer stands.
void SessionRewind::takeBack(std::int64_t step) {
  store_.takeBackFrom(step);
  emit session_.tookBack(step);
}

// The worker stands before the step, in a state that holds the edits before this one.
void SessionRewind::standBefore(std::int64_t step, std::size_t edit, const Then& there) {
  snapshot::Position between;
  between.set_step(step);
  takeBack(step);
  replay(between, edit, there);
}

void SessionRewind::rewindThen(std::int64_t step, Then then, int instruction) {
  if (link_.refuse()) return;
  const auto there = [this, step, then] {
    parts_.trainer.ring().dropAfter(step);
    parts_.edits.rewound(step);
    parts_.stepper.stopped();
    parts_.trainer.keepState();
    parts_.model.tellChangedFiles();
    if (then) then();
  };
  if (const auto kept = parts_.trainer.ring().exactly(step)) {
    loadKept(*kept, [this, step, kept, there] { standBefore(step, kept->edits, there); });
    return;
  }
  snapshot::Position goal;
  goal.set_step(step);
  goal.set_in_step(instruction > 0);
  goal.set_instruction(instruction);
  snapshot::Request state;
  state.mutable_state();
  link_.ask(std::move(state), QStringLiteral("reading the state"), [this, step, goal, there](const Delivery& d) {
    if (!d.response->has_state() || link_.busy()) return;
    const auto& ring = d.response->state().ring();
    if (std::find(ring.begin(), ring.end(), step) == ring.end()) return repeatTo(goal, there);
    snapshot::Request request;
    request.mutable_rewind()->set_step(step);
    link_.move(std::move(request), QStringLiteral("rewinding to step %1").arg(step), [this, step, there] {
      const auto& edits = parts_.edits.all();
      const auto first = std::find_if(edits.begin(), edits.end(), [step](const auto& e) { return e.step >= step; });
      standBefore(step, static_cast<std::size_t>(first - edits.begin()), there);
    });
  });
}

void SessionRewind::askWays(const std::function<void(const RewindWays&)>& then) {
  if (link_.refuse()) return;
  snapshot::Request state;
  state.mutable_state();
  link_.ask(std::move(state), QStringLiteral("reading the state"), [this, then](const Delivery& d) {
    if (!d.response->has_state() || link_.busy() || !parts_.model.built()) return;
    const auto& ring = d.response->state().ring();
    RewindWays ways;
    ways.first = std::min(parts_.model.firstStep(), store_.position().step());
    ways.last = store_.position().step();
    ways.inStep = store_.position().in_step();
    ways.loaded = parts_.trainer.ring().steps();
    ways.remembered.assign(ring.begin(), ring.end());
    ways.stepNs = parts_.recovery.stepNs();
    for (const snapshot::PhaseSpan& phase : store_.phases())
      if (phase.depth() == 0) ways.buildNs += static_cast<double>(phase.ns());
    then(ways);
  });
}

void SessionRewind::repeatTo(const snapshot::Position& goal, Then there) {
  const std::int64_t step = goal.step();
  const auto kept = parts_.trainer.ring().newest(step);
  if (!kept) {
    takeBack(step);
    parts_.trainer.ring().dropAfter(step);
    parts_.edits.rewound(step);
    store_.setPosition(goal);  // a restart on the way comes there too
    parts_.recovery.beginAgain(goal);
    return;
  }
  loadKept(*kept, [this, step, kept, there] { standBefore(step, kept->edits, there); });
}

void SessionRewind::goTo(std::int64_t step, int instruction) {
  if (run_.on) {
    wantedPlace_.emplace(step, instruction);
    parts_.trainer.pause();
    return;
  }
  if (link_.refuse()) return;
  const snapshot::Position& p = store_.position();
  if (step > p.step() || (step == p.step() && !p.in_step() && instruction < 0)) {
    emit session_.note(QStringLiteral("Step %1 has not run yet").arg(format::count(step)));
    return;
  }
  // The step is walked from the same state, so what was told of its way there is true again where it has come there.
  std::vector<snapshot::Alert> ofTheWay;
  std::ranges::copy_if(store_.alerts(), std::back_inserter(ofTheWay), [step, instruction](const auto& alert) {
    return alert.step() == step && alert.instruction() >= 0 && alert.instruction() <= instruction;
  });
  const auto there = [this, instruction, ofTheWay] {
    if (instruction < 0) return;
    parts_.stepper.inStep([this, instruction, ofTheWay] {
      snapshot::Request request;
      request.mutable_run_to()->set_instruction(instruction + 1);
      link_.move(std::move(request), QStringLiteral("running to %1").arg(instruction + 1), [this, instruction, ofTheWay] {
        parts_.answers.tellAgain(ofTheWay);
        parts_.stepper.stopped(instruction + 1);
        selection_.select(Selection::ofInstruction(instruction));
      });
    });
  };
  if (step == p.step())
    there();
  else
    rewindThen(step, there, instruction + 1);
}

void SessionRewind::takeUp(std::int64_t step, const QString& path, int instruction,
                           const std::vector<SessionEdits::Edit>& edits) {
  if (link_.refuse()) return;
  loadKept({step, path}, [this, step, instruction, edits] {
    const auto within = std::find_if(edits.begin(), edits.end(), [](const auto& e) { return e.instruction >= 0; });
    parts_.model.beginsAnew();
    parts_.edits.takeOver({edits.begin(), within});
    parts_.stepper.stopped();
    parts_.trainer.keepState();
    if (instruction < 0) return;
    parts_.edits.takeOver({within, edits.end()});
    snapshot::Position goal;
    goal.set_step(step);
    goal.set_in_step(true);
    goal.set_instruction(std::clamp(instruction, 0, store_.plan() ? store_.plan()->size() : 0));
    replay(goal, static_cast<std::size_t>(within - edits.begin()));
  });
}

void SessionRewind::loadKept(const KeptStates::State& state, const Then& then) {
  snapshot::Request load;
  load.mutable_load_state()->set_path(state.path.toStdString());
  load.mutable_load_state()->set_resume(true);
  loading_ = true;
  const Then ended = [this] { loading_ = false; };
  link_.move(
      std::move(load), QStringLiteral("returning to step %1").arg(state.step),
      [this, then, ended] {
        snapshot::Request request;
        request.mutable_state();
        link_.move(
            std::move(request), QStringLiteral("reading the state"),
            [then, ended] {
              ended();
              if (then) then();
            },
            ended);
      },
      ended);
}

void SessionRewind::replay(const snapshot::Position& goal, std::size_t edit, const Then& then) {
  replaying_ = true;
  const auto& edits = parts_.edits.all();
  // What was edited before the step began is part of how it begins.
  const bool edited =
      edit < edits.size() && (edits[edit].step < goal.step() ||
                              (edits[edit].step == goal.step() && (goal.in_step() || edits[edit].instruction < 0)));
  const std::int64_t step = edited ? edits[edit].step : goal.step();
  const int instruction = edited ? edits[edit].instruction : goal.in_step() ? goal.instruction() : -1;
  if (store_.position().step() < step) return repeatSteps(step, goal, edit, then);
  if (instruction < 0) return arrived(goal, edit, edited, then);
  parts_.stepper.inStep([this, instruction, goal, edit, edited, then] {
    snapshot::Request request;
    request.mutable_run_to()->set_instruction(instruction);
    link_.move(
        std::move(request), QStringLiteral("running to %1").arg(instruction),
        [this, goal, edit, edited, then] { arrived(goal, edit, edited, then); }, [this] { failed(); });
  });
}

// At the next edit, or at the goal.
void SessionRewind::arrived(const snapshot::Position& goal, std::size_t edit, bool edited, const Then& then) {
  if (edited) {
    link_.move(
        parts_.edits.all()[edit].request, QStringLiteral("repeating an edit"),
        [this, goal, edit, then] { replay(goal, edit + 1, then); }, [this] { failed(); });
    return;
  }
  replaying_ = false;
  if (then) return then();
  parts_.stepper.stopped();
  if (const auto wanted = std::exchange(run_.goal, std::nullopt)) parts_.trainer.trainOn(*wanted);
}

void SessionRewind::repeatSteps(std::int64_t upTo, const snapshot::Position& goal, std::size_t edit, const Then& then) {
  snapshot::Request request;
  if (store_.position().in_step())
    request.mutable_finish_step();
  else
    request.mutable_train()->set_steps(upTo - store_.position().step());
  link_.move(
      std::move(request), QStringLiteral("repeating steps up to %1").arg(upTo),
      [this, goal, edit, then] {
        snapshot::Request state;
        state.mutable_state();
        link_.move(
            std::move(state), QStringLiteral("reading the state"), [this, goal, edit, then] { replay(goal, edit, then); },
            [this] { failed(); });
      },
      [this] { failed(); });
}

// How far it came is known to the worker alone.
void SessionRewind::failed() {
  replaying_ = false;
  const auto here = [this] {
    takeBack(store_.position().step());
    parts_.stepper.stopped();
  };
  if (!link_.client().alive()) return here();
  snapshot::Request state;
  state.mutable_state();
  link_.move(std::move(state), QStringLiteral("reading the state"), here);
}

void SessionRewind::becameIdle() {
  if (link_.busy() || run_.on || !wantedPlace_) return;
  const auto [step, instruction] = *std::exchange(wantedPlace_, std::nullopt);
  if (parts_.model.built()) goTo(step, instruction);
}

}  // namespace stepscope
