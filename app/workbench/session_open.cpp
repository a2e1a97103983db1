// SPDX-License-Identifier: GPL-3.0-or-later
// Opening and building a model; coming back after the worker died.
#include <algorithm>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr std::int64_t kMostRepeated = 10'000;  // steps that a restart runs again

// Breakpoints that name no place of a model stay for the next one.
std::vector<snapshot::Breakpoint> placeless(std::vector<snapshot::Breakpoint> all) {
  std::erase_if(all, [](const snapshot::Breakpoint& b) {
    return b.condition_case() == snapshot::Breakpoint::kNode || b.condition_case() == snapshot::Breakpoint::kInstruction ||
           b.condition_case() == snapshot::Breakpoint::kPredicate;
  });
  return all;
}
}  // namespace

void Session::leave() {
  built_ = false;
  rebuilt_ = Other::kNone;
  optionsTouched_ = building_ = askingRecompute_ = false;
  nextRecompute_.reset();
  returnTo_.reset();
  waiting_.clear();
  numbers_.clear();
  ring_.clear();
  edits_.clear();
  stops_ = {};
  ++opened_;
  configuration_.Clear();
  const auto kept = placeless(store_.breakpoints());
  store_.clear();
  store_.setReadOnly(false);
  store_.setBreakpoints(kept);
  selection_.reset();
  selection_.setCurrentInstruction(-1);
  emit builtChanged();
}

void Session::inspect(const QString& path, const QString& missingWeights) {
  const Opening opening{path, missingWeights, path_, missingWeights_};
  if (busy_ && built_ && client_.state() != WorkerState::kUnresponsive) {
    wanted_ = opening;
    pause();
    return;
  }
  wanted_.reset();
  if (!busy_) return read(opening);
  leave();  // nothing of it that could stay
  replaceWorker([this, opening] { read(opening); });
}

void Session::read(const Opening& opening) {
  const bool worker = client_.alive();
  opening_ = opening;
  if (!built_) {  // a worker that dies of it can be restarted with it
    path_ = opening.path;
    missingWeights_ = opening.missingWeights;
  }
  setBusy(true);
  begin([this, worker] {
    if (!opening_) return;
    snapshot::Request request;
    request.mutable_open()->set_path(opening_->path.toStdString());
    request.mutable_open()->set_missing_weights(opening_->missingWeights.toStdString());
    move(
        std::move(request), tr("reading %1").arg(format::visible(opening_->path.section('/', -1))),
        [this] {
          if (!opening_) return;
          const Opening done = *std::exchange(opening_, std::nullopt);
          path_ = done.path;
          missingWeights_ = done.missingWeights;
          leave();
          store_.setModel(done.model);
          for (const auto& alert : done.alerts) {
            store_.addAlert(alert);
            emit alertRaised(alert);
          }
          emit modelInspected();
        },
        [this, worker] {
          if (!opening_) return;
          const Opening refused = *std::exchange(opening_, std::nullopt);
          path_ = refused.pathBefore;
          missingWeights_ = refused.missingWeightsBefore;
          if (refused.model && refused.model->problems_size() > 0) emit notRead(refused.model);
          if (!built_ || worker) return;
          returnTo_ = store_.position();  // the new worker does not know the model that stays
          reopen(true);
        },
        [this](const QString& why) {
          // Beside a model that stays, a problem has to say which file it is about.
          const QString path = opening_ ? opening_->path : path_;
          const int all =
              opening_ && opening_->model ? opening_->model->problems_size() : 1;  // the set-up lists them with their places
          const QString text =
              all > 1 ? tr("%1 problems, the first: %2").arg(format::count(all), format::visible(why.section('\n', 0, 0)))
                      : format::visible(why);
          emit problem(why.contains(path) ? text : tr("model '%1': %2").arg(format::visible(path), text), {});
        });
  });
}

void Session::build(const snapshot::Configure& configuration) {
  if (busy_) {
    emit note(tr("Still %1; Esc cancels").arg(client_.activity()));
    return;
  }
  configuration_ = configuration;
  snapshot::Request configure;
  *configure.mutable_configure() = configuration;
  move(std::move(configure), tr("setting up"), [this] {
    snapshot::Request build;
    build.mutable_build();
    building_ = true;
    move(
        std::move(build), tr("building"),
        [this] {
          building_ = false;
          refreshBuild([this] {
            built_ = true;
            snapshot::Request state;
            state.mutable_state();
            move(std::move(state), tr("reading the state"), [this] {
              const auto wanted = store_.breakpoints();
              setBreakpoints(wanted);
              emit builtChanged();
              comeBack();
            });
          });
        },
        [this] { building_ = false; });
  });
}

void Session::comeBack() {
  if (!returnTo_) return;
  snapshot::Position goal = *returnTo_;
  returnTo_.reset();
  // What the dead worker said last may be nonsense.
  goal.set_instruction(std::clamp(goal.instruction(), 0, store_.plan() ? store_.plan()->size() : 0));
  const auto state = ring_.newest(goal.step());
  const std::int64_t from = state ? state->step : store_.position().step();
  if (goal.step() < from || goal.step() - from > kMostRepeated) {
    if (state) loadKept(*state, [this] { stopped(); });
    emit note(tr("Step %1 is too far from step %2, the last one kept").arg(goal.step()).arg(from));
    return;
  }
  if (!state) {
    replay(goal, 0);
    return;
  }
  loadKept(*state, [this, goal, state] { replay(goal, state->edits); });
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

void Session::replay(const snapshot::Position& goal, std::size_t edit) {
  replaying_ = true;
  const auto failed = [this] { replaying_ = false; };
  const bool edited =
      edit < edits_.size() && (edits_[edit].step < goal.step() || (edits_[edit].step == goal.step() && goal.in_step()));
  const std::int64_t step = edited ? edits_[edit].step : goal.step();
  const int instruction = edited ? edits_[edit].instruction : goal.in_step() ? goal.instruction() : -1;
  const auto there = [this, goal, edit, edited, failed] {
    if (!edited) {
      replaying_ = false;
      stopped();
      return;
    }
    move(
        edits_[edit].request, tr("repeating an edit"), [this, goal, edit] { replay(goal, edit + 1); }, failed);
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
        [this, goal, edit, failed] {
          snapshot::Request state;
          state.mutable_state();
          move(
              std::move(state), tr("reading the state"), [this, goal, edit] { replay(goal, edit); }, failed);
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

void Session::openAndBuild(const QString& path, const snapshot::Configure& configuration) {
  auto* once = new QObject(this);
  connect(this, &Session::modelInspected, once, [this, once, configuration] {
    once->deleteLater();
    build(configuration);
  });
  connect(this, &Session::problem, once, &QObject::deleteLater);
  inspect(path, missingWeights_);
}

void Session::refreshBuild(Then then) {
  snapshot::Request graph;
  graph.mutable_graph();
  move(std::move(graph), tr("reading the graph"), [this, then] {
    snapshot::Request plan;
    plan.mutable_plan();
    move(std::move(plan), tr("reading the plan"), [this, then] {
      snapshot::Request options;
      options.mutable_options();
      move(std::move(options), tr("reading the options"), then);
    });
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

void Session::close() {
  running_ = false;
  built_ = false;
  waiting_.clear();
  wanted_.reset();
  client_.cancelAll();
  const auto kept = placeless(store_.breakpoints());
  store_.clear();
  store_.setBreakpoints(kept);
  selection_.reset();
  selection_.setCurrentInstruction(-1);
  emit builtChanged();
}

void Session::restart() {
  if (path_.isEmpty()) {
    if (!client_.alive()) client_.start();
    return;
  }
  const bool wasBuilt = built_;
  wanted_.reset();
  returnTo_.reset();
  if (wasBuilt) returnTo_ = store_.position();
  replaceWorker([this, wasBuilt] { reopen(wasBuilt); });
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
