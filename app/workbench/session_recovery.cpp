// SPDX-License-Identifier: GPL-3.0-or-later
// A worker that died, or is replaced: what is told of it, and the way back to where it was.
#include <algorithm>
#include <utility>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr double kMostRepeatedNs = 60e9;        // that a restart repeats without asking
constexpr std::int64_t kMostRepeated = 10'000;  // steps, where it is not known how long they take
}  // namespace

void Session::tellOfDeath(const QString& reason) {
  if (trace_.running()) return tellOfBuildDeath(reason);
  addSettings(waiting_, configuration_);  // the next worker gets what was chosen
  emit problem(reason, QStringLiteral("worker_died"));
}

void Session::tellOfBuildDeath(const QString& reason) {
  const GraphPtr shown = store_.plan() ? store_.graph() : nullptr;
  const BuildDeath death{reason,          trace_.phaseName(), trace_.passName(), trace_.passCanBeOff(),
                         trace_.graphs(), shown != nullptr};
  trace_.clear();
  diedWith_ = configuration_;
  addSettings(sent_, *diedWith_);
  addSettings(waiting_, *diedWith_);
  if (shown) {
    configuration_ = shownWith_;
    if (optionsBefore_) store_.setOptions(*optionsBefore_);
  }
  // The worker cannot be asked for others. A plan that is shown keeps its graph, which stands behind those of the build.
  QStringList stages;
  QString before;
  for (const GraphPtr& graph : death.graphs) stages << format::visible(graph->graph().phase());
  if (shown) {
    before = tr("%1, plan before").arg(format::visible(shown->graph().phase()));
    store_.setStages(stages << before);
  } else if (!stages.isEmpty()) {
    store_.setStages(stages);
    store_.setGraph(death.graphs.back());
  }
  for (const GraphPtr& graph : death.graphs) store_.addStage(format::visible(graph->graph().phase()), graph);
  if (shown) store_.addStage(before, shown);
  emit buildDied(death);
}

void Session::comeBack() {
  if (!returnTo_) return;
  snapshot::Position goal = *returnTo_;
  returnTo_.reset();
  // What the dead worker said last may be nonsense.
  goal.set_instruction(std::clamp(goal.instruction(), 0, store_.plan() ? store_.plan()->size() : 0));
  const auto state = ring_.newest(goal.step());
  const std::int64_t from = state ? state->step : store_.position().step();
  const std::int64_t steps = goal.step() - from;
  const double ns = stepNs() * static_cast<double>(steps);
  const bool asks = steps > 0 && (ns > kMostRepeatedNs || (ns == 0 && steps > kMostRepeated));
  if (steps < 0 || asks) {
    trainGoal_.reset();
    const auto here = [this, from, asks, step = goal.step(), ns] {
      store_.takeBackFrom(from);
      stopped();
      if (asks)
        emit longRepeat(from, step, ns);
      else
        emit note(tr("Step %1 is not kept; the oldest one is %2").arg(step).arg(from));
    };
    if (state)
      loadKept(*state, here);
    else
      here();
    return;
  }
  if (!state) {
    replay(goal, 0);
    return;
  }
  loadKept(*state, [this, goal, state] { replay(goal, state->edits); });
}

double Session::stepNs() const {
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

void Session::loadKept(const StateRing::State& state, const Then& then) {
  snapshot::Request load;
  load.mutable_load_state()->set_path(state.path.toStdString());
  load.mutable_load_state()->set_resume(true);
  move(std::move(load), tr("returning to step %1").arg(state.step), [this, then] {
    snapshot::Request request;
    request.mutable_state();
    move(std::move(request), tr("reading the state"), then);
  });
}

void Session::replay(const snapshot::Position& goal, std::size_t edit, const Then& then) {
  replaying_ = true;
  const auto failed = [this] {
    replaying_ = false;
    store_.takeBackFrom(store_.position().step());
    stopped();
  };
  const bool edited =
      edit < edits_.size() && (edits_[edit].step < goal.step() || (edits_[edit].step == goal.step() && goal.in_step()));
  const std::int64_t step = edited ? edits_[edit].step : goal.step();
  const int instruction = edited ? edits_[edit].instruction : goal.in_step() ? goal.instruction() : -1;
  const auto there = [this, goal, edit, edited, failed, then] {
    if (!edited) {
      replaying_ = false;
      if (then) {
        then();
        return;
      }
      stopped();
      if (const auto wanted = std::exchange(trainGoal_, std::nullopt)) trainOn(*wanted);
      return;
    }
    move(
        edits_[edit].request, tr("repeating an edit"), [this, goal, edit, then] { replay(goal, edit + 1, then); }, failed);
  };
  if (store_.position().step() < step) {
    const bool inStep = store_.position().in_step();
    snapshot::Request request;
    if (inStep) {
      request.mutable_finish_step();
    } else {
      request.mutable_train()->set_steps(step - store_.position().step());
    }
    move(
        std::move(request), tr("repeating steps up to %1").arg(step),
        [this, goal, edit, failed, then] {
          snapshot::Request state;
          state.mutable_state();
          move(
              std::move(state), tr("reading the state"), [this, goal, edit, then] { replay(goal, edit, then); }, failed);
        },
        failed);
    return;
  }
  if (instruction < 0) {
    there();
    return;
  }
  inStep([this, instruction, there, failed] {
    snapshot::Request request;
    request.mutable_run_to()->set_instruction(instruction);
    move(std::move(request), tr("running to %1").arg(instruction), there, failed);
  });
}

void Session::replaceWorker(Then then) {
  running_ = false;
  const auto again = [this, then = std::move(then)] {
    setBusy(false);
    then();
  };
  if (!client_.alive()) {
    setBusy(true);
    begin(again);
    return;
  }
  restarting_ = true;
  setBusy(true);  // what is asked now would go to the worker that ends
  auto* once = new QObject(this);
  connect(&client_, &WorkerClient::died, once, [this, once, again] {
    once->deleteLater();
    restarting_ = false;
    setBusy(true);
    QMetaObject::invokeMethod(
        this, [this, again] { begin(again); }, Qt::QueuedConnection);
  });
  client_.kill();
}

void Session::restart() {
  if (path_.isEmpty()) {
    if (!client_.alive()) client_.start();
    return;
  }
  startAgain(built_);
}

void Session::buildWithout(const QString& pass) {
  if (diedWith_) configuration_ = *std::exchange(diedWith_, std::nullopt);
  snapshot::Setting& setting = *configuration_.add_settings();
  setting.set_name("pass." + pass.toStdString());
  setting.set_value("off");
  startAgain(true);
}

void Session::startAgain(bool build) {
  wanted_.reset();
  returnTo_.reset();
  if (built_) {
    returnTo_ = store_.position();
    // At full speed the steps tell where it is.
    if (trainGoal_ && !store_.steps().empty() && store_.steps().back()->step() >= returnTo_->step()) {
      returnTo_->set_step(store_.steps().back()->step() + 1);
      returnTo_->set_in_step(false);
      returnTo_->set_instruction(0);
    }
  }
  replaceWorker([this, build] { reopen(build); });
}

void Session::reopen(bool wasBuilt) {
  snapshot::Request request;
  request.mutable_open()->set_path(path_.toStdString());
  request.mutable_open()->set_missing_weights(missingWeights_.toStdString());
  move(std::move(request), tr("reading the model again"), [this, wasBuilt] {
    if (!wasBuilt) {
      emit modelInspected();
      return;
    }
    build(configuration_);
  });
}

}  // namespace stepscope
