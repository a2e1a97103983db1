// SPDX-License-Identifier: GPL-3.0-or-later
// The model that was read is configured and built; what a build made is read, and what a failed one spoiled is built again.
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_model.h"
#include "app/workbench/session/session_recovery.h"
#include "app/workbench/session/session_trainer.h"
#include "engine/snapshot/alert.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/pass_stages.h"

namespace stepscope {
namespace {

// The file whose state a run under these settings begins with; empty: none.
std::string startStateOf(const snapshot::Configure& configuration) {
  std::string path;
  for (const snapshot::Setting& s : configuration.settings())
    if (s.name() == "start-state") path = s.value();
  return path;
}

}  // namespace

void SessionModel::build(const snapshot::Configure& configuration) {
  if (link_.busy() || run_.on) {
    if (run_.on) parts_.trainer.pause();
    nextBuild_ = {configuration, parts_.trainer.pauses()};
    emit session_.note(QStringLiteral("Still %1; the build begins then. Esc cancels").arg(link_.client().activity()));
    return;
  }
  nextBuild_.reset();
  store_.setBuilding(true);
  const snapshot::Configure wanted = configuration;  // it may be the one that is replaced
  const snapshot::Configure before = std::exchange(configuration_, wanted);
  std::optional<snapshot::Position> place;
  if (built_ && !parts_.recovery.comingBack()) place = store_.position();
  const bool back = parts_.recovery.comingBack();
  const auto failed = [this, before, place, back, phases = store_.phases()](bool replaced) {
    building_ = false;
    // A cancel is not meant for the way back: what is shown would be of a plan that the worker does not have.
    if (back && built_ && !wanted_ && link_.client().alive() && link_.newestError() == "cancelled") {
      emit session_.note(QStringLiteral("What was built before is built again"));
      return build(snapshot::Configure(configuration_));
    }
    if (back && built_ && !wanted_ && link_.client().alive()) {
      store_.setBuilding(false);
      return notAgain(QStringLiteral("built"));
    }
    buildFailed({before, place, phases, replaced}, std::exchange(refusal_, {}));
  };
  const auto stands = [failed] { failed(false); };
  const auto refused = [this, back](const QString& why) {
    refusal_ = why;
    if (!back || !built_) emit session_.problem(format::visible(why), {});
  };
  refusal_.clear();
  snapshot::Request configure;
  *configure.mutable_configure() = wanted;
  link_.move(
      std::move(configure), QStringLiteral("setting up"),
      [this, failed, stands, refused, back, pauses = parts_.trainer.pauses()] {
        if (pauses != parts_.trainer.pauses()) {  // it came too late for what was asked first, and is meant for all of it
          link_.tellCancelled();
          return stands();
        }
        snapshot::Request build;
        build.mutable_build();
        building_ = true;
        link_.move(
            std::move(build), QStringLiteral("building"),
            [this, failed, back, pauses] {
              building_ = false;
              const Then givenUp = [this, failed] {
                link_.tellCancelled();
                failed(true);
              };
              readBuild(0, {{store_.graph(), store_.plan()}, [this] { wasBuilt(); }, back ? Then() : givenUp, pauses});
            },
            stands, refused);
      },
      stands, refused);
}

void SessionModel::wasBuilt() {
  const bool first = !std::exchange(built_, true);
  inWorker_ = true;
  const std::string startState = startStateOf(configuration_);
  const bool otherState = startState != startStateOf(std::exchange(shownWith_, configuration_)) && !startState.empty();
  if (otherState && !parts_.recovery.comingBack()) beginsAnew();
  if (first || otherState) firstStep_ = store_.position().step();
  // A step that was paused under the plan before was thrown away with it.
  selection_.setCurrentInstruction(store_.position().in_step() ? store_.position().instruction() : -1);
  store_.setBuilding(false);
  store_.findings().setOptionProof(nullptr);  // of a plan that is no more
  if (!parts_.recovery.comingBack()) {
    store_.findings().trials().clear();
    store_.findings().golden().clear();
  }
  if (parts_.recovery.comingBack()) {
    tellChangedFiles();
  } else {
    QStringList files{path_};
    if (store_.model())
      for (const std::string& file : store_.model()->external_files()) files << QString::fromStdString(file);
    for (const auto& setting : configuration_.settings())
      if (!setting.value().empty()) files << QString::fromStdString(setting.value());
    files_.take(files);
  }
  parts_.desires.reconcile();
  emit session_.builtChanged();
  parts_.recovery.comeBack();
}

void SessionModel::tellChangedFiles() {
  for (const QString& change : files_.takeChanges()) {
    snapshot::Alert alert =
        makeAlert(snapshot::Alert::WARNING, "file_changed",
                  (change + QStringLiteral(". Steps from here on are of what it holds now")).toStdString());
    alert.set_step(store_.position().step());
    store_.addAlert(alert);
    emit session_.alertRaised(alert);
  }
}

// Steps, kept states and edits of the state before lead nowhere from the one that was loaded.
void SessionModel::beginsAnew() {
  parts_.trainer.ring().clear();
  parts_.edits.leave();
  store_.takeBackFrom(store_.position().step());
}

// Cancelled or refused. The worker may have given up the plan that ran: then what was built before is built again.
void SessionModel::buildFailed(const BeforeBuild& before, const QString& why) {
  store_.setBuilding(false);
  const snapshot::Configure refused = std::exchange(configuration_, before.configuration);
  const QString fault = link_.takeFault(), code = QString::fromStdString(link_.newestError());
  if (!link_.client().alive()) {
    configuration_ = refused;
    return;
  }
  if (before.place && code == "cancelled" && !before.replaced)
    askWhatStands(before);
  else if (before.place)
    buildAgain(before, before.replaced && startStateOf(refused) != startStateOf(before.configuration));
  if (!built_ && !store_.graph()) look();  // it ended before it told of one
  if (!why.isEmpty())
    emit session_.buildRefused(refused, why, fault, code);
  else if (code == "cancelled" && !wanted_)
    emit session_.buildCancelled(path_, refused);
}

// `otherState`: was loaded for the build that is given up. Where none of the run's own is kept, its steps are run again.
void SessionModel::buildAgain(const BeforeBuild& before, bool otherState) {
  if (otherState && !parts_.trainer.ring().newest(before.place->step())) return parts_.recovery.beginAgain(*before.place);
  parts_.recovery.returnTo(*before.place);
  build(before.configuration);
}

// A cancelled build leaves plan and place as they were, unless the plan of before could not have its memory again.
void SessionModel::askWhatStands(const BeforeBuild& before) {
  snapshot::Request state;
  state.mutable_state();
  const Then again = [this, before] {
    if (link_.client().alive()) buildAgain(before, false);
  };
  link_.move(
      std::move(state), QStringLiteral("reading the state"),
      [this, before, again] {
        const auto& now = store_.position();
        const bool stands = workerHasPlan_ && now.step() == before.place->step() &&
                            now.in_step() == before.place->in_step() && now.instruction() == before.place->instruction();
        if (!stands) return again();
        store_.setPhases(before.phases);  // not those of the build that was cancelled
        configureAgain(before.configuration);
      },
      again);
}

// The settings of the plan that the worker has, which it was about to leave. A cancel is not meant for them.
void SessionModel::configureAgain(const snapshot::Configure& configuration) {
  snapshot::Request configure;
  *configure.mutable_configure() = configuration;
  link_.move(std::move(configure), QStringLiteral("setting up"), {}, [this, configuration] {
    if (link_.client().alive() && link_.newestError() == "cancelled") configureAgain(configuration);
  });
}

void SessionModel::refreshBuild(Then then) { readBuild(0, {{store_.graph(), store_.plan()}, std::move(then)}); }

// One after the other. A cancel is not meant for them where what is shown would then be of another plan than the one that
// runs.
void SessionModel::readBuild(int part, const Reading& reading) {
  if (reading.givenUp && reading.pauses != parts_.trainer.pauses()) {
    const auto& [graph, plan] = reading.before;
    if (!plan) {
      PassStages::of(store_).set({});
      store_.setStages({});
    }
    if (part > 0 || !plan) {
      store_.setGraph(graph);
      store_.setPlan(plan);
    }
    return reading.givenUp();
  }
  if (part == 4) {
    parts_.desires.planChanged(reading.before);
    reading.then();
    return;
  }
  snapshot::Request request;
  if (part == 0) request.mutable_graph();
  if (part == 1) request.mutable_plan();
  if (part == 2) request.mutable_options();
  if (part == 3) request.mutable_state();
  const QStringList names{QStringLiteral("reading the graph"), QStringLiteral("reading the plan"),
                          QStringLiteral("reading the options"), QStringLiteral("reading the state")};
  link_.move(
      std::move(request), names[part], [this, part, reading] { readBuild(part + 1, reading); },
      [this, part, reading] {
        if (link_.client().alive() && link_.newestError() == "cancelled") readBuild(part, reading);
      });
}

}  // namespace stepscope
