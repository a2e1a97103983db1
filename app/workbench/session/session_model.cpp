// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_model.h"

#include <algorithm>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_lab.h"
#include "app/workbench/session/session_recovery.h"
#include "app/workbench/session/session_stepper.h"
#include "app/workbench/session/session_trainer.h"
#include "views/common/file_name.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {

void SessionModel::addOptions(const OptionSettings& settings) { addSettings(settings, configuration_); }

void SessionModel::diedOf(const OptionSettings& sent, const OptionSettings& waiting, bool shown) {
  diedWith_ = configuration_;
  addSettings(sent, *diedWith_);
  addSettings(waiting, *diedWith_);
  if (shown) configuration_ = shownWith_;
}

void SessionModel::configureWithout(const QString& pass) {
  if (diedWith_) configuration_ = *std::exchange(diedWith_, std::nullopt);
  snapshot::Setting& setting = *configuration_.add_settings();
  setting.set_name("pass." + pass.toStdString());
  setting.set_value("off");
}

void SessionModel::leave() {
  built_ = building_ = false;
  link_.noOtherPlan();
  link_.anotherModel();
  parts_.lab.leave();
  parts_.recovery.leave();
  parts_.trainer.leave();
  parts_.edits.leave();
  (void)parts_.stepper.takeStops();
  configuration_.Clear();
  shownWith_.Clear();
  diedWith_.reset();
  store_.clear();
  store_.setReadOnly(false);
  parts_.desires.leave();
  selection_.reset();
  selection_.setCurrentInstruction(-1);
  emit session_.builtChanged();
}

void SessionModel::inspect(const QString& path, const QString& missingWeights) {
  const Opening opening{path, missingWeights, path_, missingWeights_};
  if (link_.busy() && built_ && link_.client().state() != WorkerState::kUnresponsive) {
    wanted_ = opening;
    parts_.trainer.pause();
    return;
  }
  wanted_.reset();
  if (!link_.busy()) return read(opening);
  leave();  // nothing of it that could stay
  link_.replaceWorker([this, opening] { read(opening); });
}

void SessionModel::workerUnresponsive() {
  if (!wanted_) return;
  const Opening next = *std::exchange(wanted_, std::nullopt);
  leave();
  link_.replaceWorker([this, next] { inspect(next.path, next.missingWeights); });
}

void SessionModel::becameIdle() {
  if (link_.busy() || !wanted_) return;
  const Opening next = *std::exchange(wanted_, std::nullopt);
  inspect(next.path, next.missingWeights);
}

void SessionModel::read(const Opening& opening) {
  const bool worker = link_.client().alive();
  opening_ = opening;
  if (!built_) {  // a worker that dies of it can be restarted with it
    path_ = opening.path;
    missingWeights_ = opening.missingWeights;
  }
  link_.setBusy(true);
  link_.begin([this, worker] {
    if (!opening_) return;
    snapshot::Request request;
    request.mutable_open()->set_path(opening_->path.toStdString());
    request.mutable_open()->set_missing_weights(opening_->missingWeights.toStdString());
    link_.move(
        std::move(request), QStringLiteral("reading %1").arg(format::visible(opening_->path.section('/', -1))),
        [this] { wasRead(); }, [this, worker] { wasNotRead(worker); }, [this](const QString& why) { tellUnread(why); });
  });
}

void SessionModel::wasRead() {
  if (!opening_) return;
  const Opening done = *std::exchange(opening_, std::nullopt);
  path_ = done.path;
  missingWeights_ = done.missingWeights;
  leave();
  store_.setModel(done.model);
  for (const auto& alert : done.alerts) {
    store_.addAlert(alert);
    emit session_.alertRaised(alert);
  }
  emit session_.modelInspected();
  look();
}

void SessionModel::wasNotRead(bool hadWorker) {
  if (!opening_) return;
  const Opening refused = *std::exchange(opening_, std::nullopt);
  path_ = refused.pathBefore;
  missingWeights_ = refused.missingWeightsBefore;
  if (refused.model && refused.model->problems_size() > 0) emit session_.notRead(refused.model);
  if (!built_ || hadWorker) return;
  parts_.recovery.returnTo(store_.position());  // the new worker does not know the model that stays
  reopen(true);
}

// Beside a model that stays, a problem has to say which file it is about.
void SessionModel::tellUnread(const QString& why) {
  const QString path = opening_ ? opening_->path : path_;
  const int all = opening_ && opening_->model ? opening_->model->problems_size() : 1;  // the set-up lists them all
  const QString text =
      all > 1
          ? QStringLiteral("%1 problems, the first: %2").arg(format::count(all), format::visible(why.section('\n', 0, 0)))
          : format::visible(why);
  emit session_.problem(QStringLiteral("%1 is not opened: %2").arg(format::fileName(path), text), {});
}

// Its graph as it stands in the file; a build fetches its own.
void SessionModel::look() {
  if (link_.busy() || built_) return;
  snapshot::Request graph;
  graph.mutable_graph();
  link_.ask(std::move(graph), QStringLiteral("reading the graph"), [this](const Delivery& d) {
    if (!built_ && !link_.busy() && d.graph) store_.setGraph(d.graph);
  });
}

void SessionModel::build(const snapshot::Configure& configuration) {
  if (link_.busy()) {
    emit session_.note(QStringLiteral("Still %1; Esc cancels").arg(link_.client().activity()));
    return;
  }
  store_.setBuilding(true);
  const snapshot::Configure wanted = configuration;  // it may be the one that is replaced
  const snapshot::Configure before = std::exchange(configuration_, wanted);
  std::optional<snapshot::Position> place;
  if (built_ && !parts_.recovery.comingBack()) place = store_.position();
  const auto failed = [this, before, place] {
    building_ = false;
    buildFailed(before, place, std::exchange(refusal_, {}));
  };
  const auto refused = [this](const QString& why) {
    refusal_ = why;
    emit session_.problem(format::visible(why), {});
  };
  refusal_.clear();
  snapshot::Request configure;
  *configure.mutable_configure() = wanted;
  link_.move(
      std::move(configure), QStringLiteral("setting up"),
      [this, failed, refused] {
        snapshot::Request build;
        build.mutable_build();
        building_ = true;
        link_.move(
            std::move(build), QStringLiteral("building"),
            [this] {
              building_ = false;
              refreshBuild([this] { wasBuilt(); });
            },
            failed, refused);
      },
      failed, refused);
}

void SessionModel::wasBuilt() {
  built_ = true;
  shownWith_ = configuration_;
  // A step that was paused under the plan before was thrown away with it.
  selection_.setCurrentInstruction(store_.position().in_step() ? store_.position().instruction() : -1);
  store_.setBuilding(false);
  store_.findings().setOptionProof(nullptr);  // of a plan that is no more
  if (!parts_.recovery.comingBack()) {
    store_.findings().trials().clear();
    store_.findings().golden().clear();
  }
  parts_.desires.reconcile();
  emit session_.builtChanged();
  parts_.recovery.comeBack();
}

// Cancelled or refused. The worker may have given up the plan that ran: what was built before is built again.
void SessionModel::buildFailed(const snapshot::Configure& before, const std::optional<snapshot::Position>& place,
                               const QString& why) {
  store_.setBuilding(false);
  const snapshot::Configure refused = std::exchange(configuration_, before);
  const QString fault = link_.takeFault(), code = QString::fromStdString(link_.newestError());
  if (!link_.client().alive()) {
    configuration_ = refused;
    return;
  }
  if (place) {
    parts_.recovery.returnTo(*place);
    build(before);
  }
  if (!why.isEmpty()) emit session_.buildRefused(refused, why, fault, code);
}

void SessionModel::openAndBuild(const QString& path, const snapshot::Configure& configuration,
                                const QString& missingWeights) {
  auto* once = new QObject(this);
  connect(&session_, &ModelSession::modelInspected, once, [this, once, configuration] {
    once->deleteLater();
    build(configuration);
  });
  connect(&session_, &ModelSession::problem, once, &QObject::deleteLater);
  inspect(path, missingWeights);
}

void SessionModel::newRun() {
  if (link_.refuse()) return;
  parts_.desires.keepOverLeaving();
  openAndBuild(path_, snapshot::Configure(configuration_), missingWeights_);
}

void SessionModel::reopen(bool wasBuilt) {
  snapshot::Request request;
  request.mutable_open()->set_path(path_.toStdString());
  request.mutable_open()->set_missing_weights(missingWeights_.toStdString());
  link_.move(std::move(request), QStringLiteral("reading the model again"), [this, wasBuilt] {
    if (!wasBuilt) {
      emit session_.modelInspected();
      return;
    }
    build(configuration_);
  });
}

void SessionModel::refreshBuild(Then then) { readBuild(0, {store_.graph(), store_.plan()}, std::move(then)); }

// One after the other. A cancel is not meant for them: what is shown would be of another plan than the one that runs.
void SessionModel::readBuild(int part, const ShownPlan& before, Then then) {
  if (part == 4) {
    parts_.desires.planChanged(before);
    then();
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
      std::move(request), names[part], [this, part, before, then] { readBuild(part + 1, before, then); },
      [this, part, before, then] {
        if (link_.client().alive() && link_.newestError() == "cancelled") readBuild(part, before, then);
      });
}

void SessionModel::stageGraph(const QString& stage) {
  if (!built_ || store_.graphOf(stage)) return;
  snapshot::Request request;
  request.mutable_graph()->set_phase(stage.toStdString());
  link_.ask(std::move(request), QStringLiteral("reading the graph of %1").arg(stage), [this, stage](const Delivery& d) {
    if (d.graph) store_.addStage(stage, d.graph);
  });
}

void SessionModel::forget() {
  close();
  opening_.reset();
  path_.clear();
  missingWeights_.clear();
}

void SessionModel::close() {
  run_.on = false;
  run_.goal.reset();
  built_ = false;
  wanted_.reset();
  link_.client().cancelAll();
  store_.clear();
  parts_.desires.leave();
  selection_.reset();
  selection_.setCurrentInstruction(-1);
  emit session_.builtChanged();
}

}  // namespace stepscope
