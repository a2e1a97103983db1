// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_recovery.h"

#include <algorithm>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_rewind.h"
#include "app/workbench/session/session_stepper.h"
#include "app/workbench/session/session_trainer.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr double kMostRepeatedNs = 60e9;        // that a restart repeats without asking
constexpr std::int64_t kMostRepeated = 10'000;  // steps, where it is not known how long they take
}  // namespace

void SessionRecovery::workerDied(const QString& reason) {
  const OptionSettings sent = parts_.desires.takeSent(), waiting = parts_.desires.takeWaiting();
  if (trace_.running() && !link_.replacing()) return tellOfBuildDeath(reason, sent, waiting);
  parts_.model.dropDiedSetUp();
  // The next worker gets what was chosen; not what held this one up when it was replaced.
  if (!trace_.running()) parts_.model.addOptions(sent);
  parts_.model.addOptions(waiting);
  trace_.clear();
  if (!link_.replacing()) emit session_.problem(reason, QStringLiteral("worker_died"));
}

void SessionRecovery::tellOfBuildDeath(const QString& reason, const OptionSettings& sent, const OptionSettings& waiting) {
  const GraphPtr shown = store_.plan() ? store_.graph() : nullptr;
  const BuildDeath death{reason,          trace_.phaseName(), trace_.passName(), trace_.passCanBeOff(),
                         trace_.graphs(), shown != nullptr};
  trace_.clear();
  parts_.model.diedOf(sent, waiting, shown != nullptr);
  if (shown) parts_.desires.showOptionsBefore();
  // The worker cannot be asked for others. A plan that is shown keeps its graph, which stands behind those of the build.
  QStringList stages;
  QString before;
  for (const GraphPtr& graph : death.graphs) stages << format::visible(graph->graph().phase());
  if (shown) {
    before = QStringLiteral("%1, plan before").arg(format::visible(shown->graph().phase()));
    store_.setStages(stages << before);
  } else if (!stages.isEmpty()) {
    store_.setStages(stages);
    store_.setGraph(death.graphs.back());
  }
  for (const GraphPtr& graph : death.graphs) store_.addStage(format::visible(graph->graph().phase()), graph);
  if (shown) store_.addStage(before, shown);
  emit session_.buildDied(death);
}

void SessionRecovery::comeBack() {
  if (!returnTo_) return;
  snapshot::Position goal = *returnTo_;
  returnTo_.reset();
  // What the dead worker said last may be nonsense.
  goal.set_instruction(std::clamp(goal.instruction(), 0, store_.plan() ? store_.plan()->size() : 0));
  const auto state = parts_.trainer.ring().newest(goal.step());
  const std::int64_t from = state ? state->step : store_.position().step();
  const std::int64_t steps = goal.step() - from;
  const double ns = stepNs() * static_cast<double>(steps);
  const bool asks = steps > 0 && (ns > kMostRepeatedNs || (ns == 0 && steps > kMostRepeated));
  if (steps < 0 || asks) {
    run_.goal.reset();
    const auto here = [this, from, asks, step = goal.step(), ns] {
      store_.takeBackFrom(from);
      emit session_.tookBack(from);
      parts_.stepper.stopped();
      if (asks)
        emit session_.longRepeat(from, step, ns);
      else
        emit session_.note(QStringLiteral("Step %1 is not kept; the oldest one is %2").arg(step).arg(from));
    };
    if (state)
      parts_.rewind.loadKept(*state, here);
    else
      here();
    return;
  }
  if (!state) {
    parts_.rewind.replay(goal, 0);
    return;
  }
  parts_.rewind.loadKept(*state, [this, goal, state] { parts_.rewind.replay(goal, state->edits); });
}

// Nothing can be asked of it but to try again.
void SessionRecovery::giveUp(const QString& why) {
  returnTo_.reset();
  trace_.clear();
  link_.stopWorker(why);
}

double SessionRecovery::stepNs() const {
  constexpr std::size_t kLooked = 64;
  const auto& steps = store_.steps();
  std::vector<double> ns;
  for (std::size_t i = steps.size() - std::min(kLooked, steps.size()); i < steps.size(); ++i)
    ns.push_back(static_cast<double>(steps[i]->ns()));
  if (ns.empty()) return 0;
  // Those that were walked by hand hold the time of the person.
  const auto quarter = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 4);
  std::nth_element(ns.begin(), quarter, ns.end());
  return *quarter;
}

void SessionRecovery::restart() {
  if (parts_.model.path().isEmpty()) {
    if (!link_.client().alive()) link_.client().start();
    return;
  }
  startAgain(parts_.model.built());
}

void SessionRecovery::buildWithout(const QString& pass) {
  parts_.model.configureWithout(pass);
  startAgain(true);
}

void SessionRecovery::beginAgain(const snapshot::Position& goal) {
  parts_.model.forgetWanted();
  returnTo_ = goal;
  link_.replaceWorker([this] { parts_.model.reopen(true); });
}

void SessionRecovery::startAgain(bool build) {
  parts_.model.forgetWanted();
  returnTo_.reset();
  if (parts_.model.built()) {
    parts_.trainer.lostWorker();  // a worker that lives and does not answer has not told of its end
    returnTo_ = store_.position();
  }
  link_.replaceWorker([this, build] { parts_.model.reopen(build); });
}

}  // namespace stepscope
