// SPDX-License-Identifier: GPL-3.0-or-later
// Going back over steps: to a state that is kept, or from one before it by repeating.
#include <algorithm>
#include <utility>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {

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

}  // namespace stepscope
