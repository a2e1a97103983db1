// SPDX-License-Identifier: GPL-3.0-or-later
// Opening and building a model; coming back after the worker died.
#include <algorithm>

#include "app/workbench/session.h"
#include "views/common/format.h"

namespace stepscope {
namespace {
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
  trainGoal_.reset();
  waiting_.clear();
  ring_.clear();
  edits_.clear();
  stops_ = {};
  ++opened_;
  configuration_.Clear();
  shownWith_.Clear();
  diedWith_.reset();
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
          look();
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

// Its graph as it stands in the file; a build fetches its own.
void Session::look() {
  if (busy_ || built_) return;
  snapshot::Request graph;
  graph.mutable_graph();
  ask(std::move(graph), tr("reading the graph"), [this](const Delivery& d) {
    if (!built_ && !busy_ && d.graph) store_.setGraph(d.graph);
  });
}

void Session::build(const snapshot::Configure& configuration) {
  if (busy_) {
    emit note(tr("Still %1; Esc cancels").arg(client_.activity()));
    return;
  }
  store_.setBuilding(true);
  const snapshot::Configure wanted = configuration;  // it may be the one that is replaced
  const snapshot::Configure before = std::exchange(configuration_, wanted);
  std::optional<snapshot::Position> place;
  if (built_ && !returnTo_) place = store_.position();
  const auto failed = [this, before, place] {
    building_ = false;
    buildFailed(before, place, std::exchange(refusal_, {}));
  };
  const auto refused = [this](const QString& why) {
    refusal_ = why;
    emit problem(format::visible(why), {});
  };
  refusal_.clear();
  snapshot::Request configure;
  *configure.mutable_configure() = wanted;
  move(
      std::move(configure), tr("setting up"),
      [this, failed, refused] {
        snapshot::Request build;
        build.mutable_build();
        building_ = true;
        move(
            std::move(build), tr("building"),
            [this] {
              building_ = false;
              refreshBuild([this] {
                built_ = true;
                shownWith_ = configuration_;
                snapshot::Request state;
                state.mutable_state();
                move(std::move(state), tr("reading the state"), [this] {
                  const auto wanted = store_.breakpoints();
                  setBreakpoints(wanted);
                  store_.setBuilding(false);
                  store_.findings().setOptionProof(nullptr);  // of a plan that is no more
                  if (!returnTo_) {
                    store_.findings().trials().clear();
                    store_.findings().golden().clear();
                  }
                  emit builtChanged();
                  comeBack();
                });
              });
            },
            failed, refused);
      },
      failed, refused);
}

// Cancelled or refused. The worker may have given up the plan that ran: what was built before is built again.
void Session::buildFailed(const snapshot::Configure& before, const std::optional<snapshot::Position>& place,
                          const QString& why) {
  store_.setBuilding(false);
  const snapshot::Configure refused = std::exchange(configuration_, before);
  const QString fault = std::exchange(fault_, {});
  if (!client_.alive()) {
    configuration_ = refused;
    return;
  }
  if (place) {
    returnTo_ = place;
    build(before);
  }
  if (!why.isEmpty()) emit buildRefused(refused, why, fault);
}

void Session::openAndBuild(const QString& path, const snapshot::Configure& configuration, const QString& missingWeights) {
  auto* once = new QObject(this);
  connect(this, &Session::modelInspected, once, [this, once, configuration] {
    once->deleteLater();
    build(configuration);
  });
  connect(this, &Session::problem, once, &QObject::deleteLater);
  inspect(path, missingWeights);
}

void Session::newRun() {
  if (refuse()) return;
  const auto breakpoints = store_.breakpoints();
  const auto watched = store_.watched();
  auto* once = new QObject(this);
  connect(this, &Session::builtChanged, once, [this, once, breakpoints, watched] {
    if (!built_) return;  // what was there is left first
    once->deleteLater();
    setBreakpoints(breakpoints);
    if (!watched.empty()) watchAll(watched);
  });
  connect(this, &Session::problem, once, &QObject::deleteLater);
  openAndBuild(path_, snapshot::Configure(configuration_), missingWeights_);
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

void Session::close() {
  running_ = false;
  trainGoal_.reset();
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

}  // namespace stepscope
