// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/model_opening.h"

#include <QFileInfo>
#include <QTimer>
#include <algorithm>

#include "app/workbench/actions.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/places.h"
#include "app/workbench/questions.h"
#include "app/workbench/recent_files.h"
#include "app/workbench/recording.h"
#include "app/workbench/session/model_session.h"
#include "views/common/file_name.h"
#include "views/common/format.h"
#include "views/open_dialog/set_up_dialog.h"

namespace stepscope {
namespace {
const QString kMadeUp = QStringLiteral("made_up_data");
}  // namespace

ModelOpening::ModelOpening(const WindowParts& parts, FileQuestions& questions, RecentFiles& files, QBoxLayout& middle,
                           QWidget& pages)
    : parts_(parts),
      session_(parts.session),
      store_(parts.store),
      questions_(questions),
      files_(files),
      middle_(middle),
      pages_(pages) {
  connect(parts_.actions[QStringLiteral("configure")], &QAction::triggered, this, &ModelOpening::showSetUp);
  connect(&parts_.wishes, &Wishes::openPath, this, &ModelOpening::open);
  connect(&parts_.wishes, &Wishes::openDialog, this, &ModelOpening::ask);
  connectPeek();
  for (auto over : {&ModelOpening::begun, &ModelOpening::choosing})
    connect(this, over, this, [this] { parts_.notice.clearStanding(kMadeUp); });
  connect(&session_, &ModelSession::modelInspected, this, [this] {
    // Not in the turn that took the answer: the dialog is work enough for one.
    if (!scripted_)
      QTimer::singleShot(0, this, [this, asked = setUps_] {
        // A build that began with the model needs none.
        if (asked == setUps_ && !session_.built() && !store_.building()) showSetUp();
      });
  });
  // Comes back to its set-up as it was filled in, of the model that is open or of another one that was to be built.
  connect(&session_, &ModelSession::buildCancelled, this, [this](const QString& path, const snapshot::Configure& cancelled) {
    const ModelPtr model = path == session_.modelPath() ? store_.model() : path == wantedFor_ ? wantedModel_ : nullptr;
    if (!model) return;
    QTimer::singleShot(0, this, [this, model, path, cancelled, asked = setUps_] {
      if (asked == setUps_) showSetUpOf(model, cancelled, path, path == wantedFor_ ? wantedWeights_ : QString());
    });
  });
  connect(&session_, &ModelSession::notRead, this, [this](const ModelPtr& model) {
    if (scripted_) return;
    QTimer::singleShot(0, this, [this, model, asked = setUps_] {
      if (asked == setUps_) showSetUpOf(model, {}, QString::fromStdString(model->path()));
    });
  });
}

void ModelOpening::ask() {
  if (!session_.client().host().local()) return emit askedThere();
  questions_.askToOpen(QStringLiteral("Open a model or a project"), QFileInfo(files_.newest()).path(),
                       QStringLiteral("Models and projects (*.onnx *.stepscope);;All files (*)"),
                       [this](const QString& path) { open(path); });
}

void ModelOpening::openThere(const QString& path) {
  parts_.notice.clear();
  closeSetUp();
  scripted_ = false;
  emit begun();
  session_.inspect(path, {});
}

void ModelOpening::openAttached() {
  const snapshot::AttachedScript* script = session_.attached();
  if (!script) return;
  const QString name = script->script().empty() ? QStringLiteral("script") : QString::fromStdString(script->script());
  parts_.notice.clear();
  setScripted();
  emit begun();
  auto* once = new QObject(this);
  connect(&session_, &ModelSession::builtChanged, once, [this, once] {
    if (!session_.built()) return;  // what was open before is left
    once->deleteLater();
    QTimer::singleShot(0, this, [this] {
      if (session_.attached() && session_.built()) session_.letRun();
    });
  });
  connect(&session_, &ModelSession::problem, once, &QObject::deleteLater);
  session_.openAndBuild(QStringLiteral("%1 (PID %2)").arg(name).arg(script->pid()), {});
}

// A script goes on by itself; what is opened next is opened with a worker.
void ModelOpening::openDetached(std::function<void()> open) {
  parts_.notice.clear();
  connect(&session_, &ModelSession::hostChanged, this, std::move(open), Qt::SingleShotConnection);
  session_.connectTo({});
}

void ModelOpening::open(const QString& path) {
  if (!isProject(path) && session_.attached()) return openDetached([this, path] { open(path); });
  if (!isProject(path) && !session_.client().host().local()) return openThere(path);
  const Place place = placeToOpen(path);
  if (!place.problem.isEmpty()) {
    // What is open stays; a set-up of another file is of neither.
    for (auto* dialog : parts_.window.findChildren<SetUpDialog*>())
      if (dialog->model() != store_.model()) dialog->close();
    const bool gone = !QFileInfo::exists(path) && files_.lists(path);
    return parts_.notice.showProblem(place.problem, gone ? QStringLiteral("Remove from the list") : QString(),
                                     [this, path] { files_.forget(path); });
  }
  parts_.notice.clear();
  closeSetUp();
  scripted_ = false;
  emit begun();
  if (isProject(place.path)) {
    parts_.recording.open(place.path, 0);
    return;
  }
  read(place.path, {});
}

// A model that is open stays until this one is built or looked at.
void ModelOpening::read(const QString& path, const QString& missingWeights) {
  if (session_.built() && session_.client().alive() && store_.workerState() != WorkerState::kUnresponsive)
    peek_.read(path, missingWeights);
  else
    session_.inspect(path, missingWeights);
}

void ModelOpening::openAndBuild(const QString& path, const snapshot::Configure& configuration) {
  if (session_.attached() && !isProject(path))
    return openDetached([this, path, configuration] { openAndBuild(path, configuration); });
  const bool here = session_.client().host().local();
  const Place place = here && QFileInfo(path).isDir() ? placeToOpen(path)
                      : here                          ? Place{QFileInfo(path).absoluteFilePath(), {}}
                                                      : Place{path, {}};
  if (!place.problem.isEmpty()) return parts_.notice.showProblem(place.problem, {}, {});
  if (isProject(place.path)) return open(place.path);
  parts_.notice.clear();
  scripted_ = comesBack_ = true;
  emit begun();
  const auto chosen = [](const snapshot::Setting& s) { return s.name() == "data" && !s.value().empty(); };
  if (std::ranges::none_of(configuration.settings(), chosen)) tellMadeUpData();
  session_.openAndBuild(place.path, configuration);
}

void ModelOpening::tellMadeUpData() {
  auto* once = new QObject(this);
  for (auto over : {&ModelOpening::begun, &ModelOpening::choosing}) connect(this, over, once, &QObject::deleteLater);
  connect(&session_, &ModelSession::builtChanged, once, [this, once] {
    if (!session_.built()) return;
    once->deleteLater();
    const QString beside = store_.model() ? QString::fromStdString(store_.model()->proposed_data()) : QString();
    QString text = QStringLiteral(
        "No data was chosen: this model is trained on data that are made up (from the seed, in ranges that its graph "
        "allows). Times and memory are real, losses say nothing.");
    if (!beside.isEmpty()) text += QStringLiteral(" %1 beside the model would fit.").arg(format::fileName(beside));
    parts_.notice.stand(kMadeUp, NoticeBar::Standing::kFact, text, QStringLiteral("Change set-up…"),
                        [this] { parts_.actions[QStringLiteral("configure")]->trigger(); });
  });
}

void ModelOpening::connectPeek() {
  connect(&peek_, &ModelPeek::modelRead, this, [this](const QString& path, const ModelPtr& model, const QString& weights) {
    showSetUpOf(model, files_.lastSetUp(path), path, weights);
    emit peeked(path);
  });
  connect(&peek_, &ModelPeek::refused, this, [this](const QString& path, const QString& why, const ModelPtr& model) {
    const QString text = format::visible(why.section('\n', 0, 0));
    const int all = model ? model->problems_size() : 1;
    const QString said = all > 1 ? QStringLiteral("%1 problems, the first: %2").arg(format::count(all), text) : text;
    parts_.notice.showProblem(QStringLiteral("%1 is not opened: %2").arg(format::fileName(path), said), {}, {});
    if (model && model->problems_size() > 0) showSetUpOf(model, {}, path);
  });
  connect(&session_, &ModelSession::buildRefused, this,
          [this](const snapshot::Configure& refused, const QString& text, const QString& setting, const QString& code) {
            if ((scripted_ && !comesBack_) || !store_.model()) return;
            wanted_ = refused;  // also when this set-up is left and another one opened
            wantedFor_ = session_.modelPath();
            SetUpDialog* dialog = showSetUpOf(store_.model(), refused, session_.modelPath());
            dialog->showProblem(text, setting);
            if (code == u"out_of_memory") dialog->offerToFit();
          });
  connect(&session_, &ModelSession::builtChanged, this, [this] { comesBack_ = comesBack_ && !session_.built(); });
  // A model is looked at: its graph is there before anything is built.
  connect(&store_, &SnapshotStore::graphChanged, this, [this] {
    if (store_.graph() && !session_.built() && !store_.readOnly()) emit lookedAt();
  });
}

}  // namespace stepscope
