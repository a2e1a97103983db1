// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/session_model.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "app/workbench/session/model_session.h"
#include "app/workbench/session/session_desires.h"
#include "app/workbench/session/session_edits.h"
#include "app/workbench/session/session_lab.h"
#include "app/workbench/session/session_recovery.h"
#include "app/workbench/session/session_stepper.h"
#include "app/workbench/session/session_trainer.h"
#include "views/common/file_name.h"
#include "views/common/format.h"

namespace stepscope {

void SessionModel::addOptions(const OptionSettings& settings) {
  addSettings(settings, configuration_);
  if (nextBuild_) addSettings(settings, nextBuild_->configuration);  // they were chosen after it
}

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
  nextBuild_.reset();
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
  if (link_.busy() || run_.on) return;
  if (!wanted_ && nextBuild_) {
    const NextBuild next = *std::exchange(nextBuild_, std::nullopt);
    if (next.pauses == parts_.trainer.pauses()) return build(next.configuration);
    link_.tellCancelled();
    emit session_.buildCancelled(path_, next.configuration);
    return;
  }
  if (!wanted_) return;
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
    if (!link_.client().host().attached()) request.mutable_open()->set_path(opening_->path.toStdString());
    request.mutable_open()->set_missing_weights(opening_->missingWeights.toStdString());
    link_.move(
        std::move(request),
        (link_.client().host().attached() ? QStringLiteral("waiting for a pass of %1") : QStringLiteral("reading %1"))
            .arg(format::visible(opening_->path.section('/', -1))),
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
  if (link_.newestError() == "cancelled") emit readCancelled();
  if (!built_ || (hadWorker && inWorker_)) return;
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

void SessionModel::openAndBuild(const QString& path, const snapshot::Configure& configuration,
                                const QString& missingWeights) {
  auto* once = new QObject(this);
  const auto pauses = std::make_shared<int>(parts_.trainer.pauses());
  connect(&session_, &ModelSession::modelInspected, once, [this, once, configuration, pauses] {
    once->deleteLater();
    if (*pauses == parts_.trainer.pauses()) return build(configuration);
    link_.tellCancelled();
    emit session_.buildCancelled(path_, configuration);
  });
  connect(&session_, &ModelSession::problem, once, &QObject::deleteLater);
  connect(this, &SessionModel::readCancelled, once, [this, once, path, configuration] {
    once->deleteLater();
    emit session_.buildCancelled(path, configuration);
  });
  inspect(path, missingWeights);
  *pauses = parts_.trainer.pauses();  // what ran was paused for it
}

void SessionModel::newRun() { newRun(snapshot::Configure(configuration_)); }

void SessionModel::newRun(const snapshot::Configure& configuration) {
  if (link_.refuse()) return;
  parts_.desires.keepOverLeaving();
  openAndBuild(path_, configuration, missingWeights_);
}

void SessionModel::reopen(bool wasBuilt) {
  snapshot::Request request;
  request.mutable_open()->set_path(path_.toStdString());
  request.mutable_open()->set_missing_weights(missingWeights_.toStdString());
  refusal_.clear();
  link_.move(
      std::move(request), QStringLiteral("reading the model again"),
      [this, wasBuilt] {
        if (!wasBuilt) {
          emit session_.modelInspected();
          return;
        }
        build(configuration_);
      },
      [this] {
        if (link_.client().alive() && !wanted_) notAgain(QStringLiteral("read"));
      },
      [this](const QString& why) { refusal_ = why; });
}

void SessionModel::notAgain(const QString& what) {
  const QString why = std::exchange(refusal_, {});
  const QString text =
      QStringLiteral("'%1' could not be %2 again: %3")
          .arg(format::visible(path_), what, why.isEmpty() ? QStringLiteral("it was cancelled") : format::visible(why));
  if (built_)
    parts_.recovery.giveUp(text);
  else if (!why.isEmpty())
    emit session_.problem(text, {});
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
  nextBuild_.reset();
  link_.client().cancelAll();
  store_.clear();
  parts_.desires.leave();
  selection_.reset();
  selection_.setCurrentInstruction(-1);
  emit session_.builtChanged();
}

}  // namespace stepscope
