// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/kept_training.h"

#include <QAction>
#include <QDir>
#include <QEventLoop>
#include <QFile>
#include <QFileInfo>
#include <QTimer>
#include <algorithm>
#include <utility>

#include "app/workbench/actions.h"
#include "app/workbench/model_opening.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/recording.h"
#include "app/workbench/recording_wiring.h"
#include "app/workbench/return_path.h"
#include "app/workbench/session/model_session.h"
#include "app/workbench/state_ring.h"
#include "views/common/file_name.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr int kMostKept = 3;  // runs of a project

QString baseOf(const QString& project, qint64 run) {
  QString base = project;
  if (base.endsWith(QStringLiteral(".stepscope"))) base.chop(10);
  return base + QStringLiteral(".run-%1").arg(run);
}

// Places of the project's runs, the newest first.
QFileInfoList places(const QString& project) {
  const QFileInfo any(baseOf(project, 0));
  const QString name = any.fileName().chopped(1);  // with the wild cards that a file may have in its name
  QFileInfoList found = any.dir().entryInfoList(QDir::Files, QDir::Time);
  found.removeIf([&name](const QFileInfo& f) {
    return !f.fileName().startsWith(name) || !f.fileName().endsWith(QStringLiteral(".place.json"));
  });
  return found;
}

QString stateBeside(const QFileInfo& place) {
  return place.filePath().chopped(11) + QStringLiteral(".safetensors");  // .place.json
}

// ", before instruction 7. Its state was kept, and 1 value that was set by hand since."
QString whatIsKept(const SessionPlace& place) {
  const auto& edits = place.edits;
  const auto within = std::count_if(edits.begin(), edits.end(), [](const auto& e) { return e.instruction >= 0; });
  if (place.instruction < 0) return QStringLiteral(", whose state was kept.");
  QStringList lost;
  for (const PlaceEdit& e : edits)
    if (isDropped(e)) lost << format::visible(e.value);
  const qint64 kept = within - lost.size();
  QString text = QStringLiteral(", before instruction %1. The state in which the step began was kept")
                     .arg(format::count(place.instruction));
  if (kept > 0)
    text += QStringLiteral(", and %1 by hand since")
                .arg(kept == 1 ? QStringLiteral("1 value that was set")
                               : QStringLiteral("%1 values that were set").arg(format::count(kept)));
  text += '.';
  if (!lost.isEmpty())
    text += QStringLiteral(" Not kept: what was loaded from a file into %1.").arg(lost.join(QStringLiteral(", ")));
  return text;
}

void removeOld(const QString& project) {
  const QFileInfoList all = places(project);
  for (qsizetype i = kMostKept; i < all.size(); ++i) {
    QFile::remove(stateBeside(all[i]));
    QFile::remove(all[i].filePath());
  }
}

}  // namespace

KeptTraining::KeptTraining(const WindowParts& parts, ModelOpening& opening, RecordingWiring& wiring, ReturnPath& path)
    : parts_(parts), session_(parts.session), store_(parts.store), opening_(opening), wiring_(wiring), path_(path) {
  connect(&session_, &ModelSession::busyChanged, this, &KeptTraining::goOn);
  connect(&store_, &SnapshotStore::workerChanged, this, &KeptTraining::goOn);
  connect(&parts_.recording, &Recording::begun, this, &KeptTraining::goOn);
  connect(&opening_, &ModelOpening::begun, this, [this] {
    offered_.reset();
    update();
  });
  connect(&session_, &ModelSession::builtChanged, this, [this] {
    if (session_.built()) parts_.notice.clearStop();
    offered_.reset();
    update();
  });
  connect(&session_, &ModelSession::modelInspected, this, [this] {
    if (!session_.built() && !store_.building() && session_.client().host().local())
      offer(wiring_.pathFor(session_.modelPath()), 0);
  });
  connect(&parts_.recording, &Recording::opened, this,
          [this](const QString& project) { offer(project, parts_.recording.queries().run()); });
  connect(parts_.actions[QStringLiteral("continue_run")], &QAction::triggered, this, [this] {
    if (!offered_) return;
    parts_.notice.clear();
    opening_.leave();
    keepBefore([this, place = *offered_] {
      wiring_.goesOnFrom(place.run, place.step);
      path_.goBack(place);
    });
  });
  opening_.setKeeper([this](std::function<void()> then) { keepBefore(std::move(then)); });
  connect(&opening_, &ModelOpening::peeked, this, [this](const QString& path) {
    const QString project = wiring_.pathFor(path);
    const auto place = find(project, 0);
    if (path != session_.modelPath() && !path_.offered(path) && place && place->path == path) offer(project, place->run);
  });
  update();
}

std::optional<SessionPlace> KeptTraining::find(const QString& project, qint64 run, QString* problem) {
  for (const QFileInfo& file : places(project)) {
    std::optional<SessionPlace> place = readPlace(file.filePath(), problem);
    if (!place || (run != 0 && place->run != run)) continue;
    place->state = stateBeside(file);
    if (QFileInfo::exists(place->state) && QFileInfo::exists(place->path)) return place;
  }
  return std::nullopt;
}

void KeptTraining::offer(const QString& project, qint64 run) {
  if (path_.offered(session_.modelPath())) return;  // a window that crashed since
  QString problem;
  offered_ = find(project, run, &problem);
  if (!problem.isEmpty()) store_.addLog({QStringLiteral("warning"), problem});
  update();
  if (!offered_) return;
  const QString of = offered_->run > 0 ? QStringLiteral(" of run %1").arg(offered_->run) : QString();
  parts_.notice.showStop(
      QStringLiteral("This training was left at step %1%2 of %3%4 Going on from there is a run of its own.")
          .arg(format::count(offered_->step), of, format::fileName(offered_->path), whatIsKept(*offered_)),
      QStringLiteral("Continue"), [this] { parts_.actions[QStringLiteral("continue_run")]->trigger(); });
}

void KeptTraining::update() { parts_.actions[QStringLiteral("continue_run")]->setEnabled(offered_.has_value()); }

bool KeptTraining::wanted() const {
  if (!wiring_.lasting() || !session_.built() || !session_.client().alive()) return false;
  if (!session_.client().host().local() || session_.attached() || store_.workerState() == WorkerState::kUnresponsive)
    return false;
  if (!trained() && !session_.running()) return false;
  const qint64 bytes = store_.plan() ? store_.plan()->plan().persistent_bytes() : 0;
  return 4 * bytes <= KeptStates::freeBytes(QFileInfo(store_.project().projectPath()).path());
}

bool KeptTraining::trained() const { return store_.position().step() > 0 || !session_.editsOfStep().empty(); }

SessionPlace KeptTraining::present() const {
  SessionPlace place = path_.present();
  for (const SessionEdits::Edit& e : session_.editsOfStep()) {
    const auto* value = store_.graph() ? store_.graph()->value(e.request.edit().value()) : nullptr;
    place.edits.push_back({e.instruction, QByteArray::fromStdString(e.request.SerializeAsString()),
                           value ? QString::fromStdString(value->name()) : QString(), e.before});
  }
  return place;
}

bool KeptTraining::keep() {
  if (closing_ && std::exchange(staying_, false)) return true;  // it is being kept: it closes then
  if (std::exchange(closing_, true) || !wanted()) return false;
  if (session_.running()) parts_.recording.endsAs(storage::RunStatus::kCancelled);
  if (session_.working()) session_.pause();
  parts_.notice.showStop(
      QStringLiteral("Keeping the state of this training (%1), so that it can go on from here. The window closes then.")
          .arg(format::bytes(store_.plan() ? store_.plan()->plan().persistent_bytes() : 0)),
      QStringLiteral("Close without"), [this] { end(); });
  goOn();
  return true;
}

void KeptTraining::keepAndStay(int ms) {
  if (closing_) return;
  QEventLoop loop;
  connect(this, &KeptTraining::ended, &loop, &QEventLoop::quit);
  QTimer::singleShot(ms, &loop, &QEventLoop::quit);
  if (keep()) {
    staying_ = true;
    parts_.notice.showStop(
        QStringLiteral("The desktop session is about to end: keeping the state of this training, so that it can go on from "
                       "here."),
        {}, {});
    loop.exec();
    if (!staying_) return;  // it was closed meanwhile
    parts_.notice.clearStop();
    parts_.notice.showStop(
        QStringLiteral("The desktop session is about to end: this training was paused, and its state kept. It goes on from "
                       "here, or after the next start."),
        {}, {});
  }
  leaveOff();
}

void KeptTraining::keepBefore(std::function<void()> then) {
  if (closing_ || !wanted()) return then();
  then_ = std::move(then);
  (void)keep();
  staying_ = true;
  parts_.notice.showStop(
      QStringLiteral("Keeping the state of this training (%1), so that it can go on from here. The other model opens then.")
          .arg(format::bytes(store_.plan() ? store_.plan()->plan().persistent_bytes() : 0)),
      QStringLiteral("Open without"), [this] { end(); });
}

void KeptTraining::leaveOff() {
  closing_ = saving_ = staying_ = false;
  place_.reset();
}

void KeptTraining::end() {
  if (!closing_) saving_ = false;  // too late
  const auto then = std::exchange(then_, {});
  const bool stays = staying_;
  if (closing_ && !staying_) emit kept();
  emit ended();
  if (!then || !stays) return;
  parts_.notice.clearStop();
  leaveOff();
  QTimer::singleShot(0, this, then);  // not from within an answer of the worker that it leaves
}

void KeptTraining::goOn() {
  // After a log-out that was called off.
  if (!closing_ && session_.running()) parts_.recording.endsAs(storage::RunStatus::kFinished);
  if (!closing_ || saving_) return;
  QTimer::singleShot(0, this, [this] {
    if (!closing_ || saving_) return;
    if (!session_.client().alive() || store_.workerState() == WorkerState::kUnresponsive) return saved(false);
    if (session_.busy() || session_.running() || (parts_.recording.recording() && parts_.recording.run() == 0)) return;
    // Of a step that is begun the state before it is kept, and the way from there.
    if (!place_ && trained()) place_ = present();
    if (store_.position().in_step()) return session_.abandon();
    save();
  });
}

void KeptTraining::save() {
  saving_ = true;
  const QString project = store_.project().projectPath();
  const qint64 run = parts_.recording.run();
  if (project.isEmpty() || !place_) return saved(false);
  file_ = baseOf(project, run);
  place_->run = run;
  session_.saveState(file_ + QStringLiteral(".part"), [this](bool good) { saved(good); });
}

void KeptTraining::saved(bool good) {
  saving_ = true;
  const QString part = file_ + QStringLiteral(".part"), state = file_ + QStringLiteral(".safetensors");
  if (good && place_) {
    QFile::remove(state);
    QFile file(file_ + QStringLiteral(".place.json"));
    if (QFile::rename(part, state) && file.open(QIODevice::WriteOnly | QIODevice::Truncate)) file.write(jsonOf(*place_));
    file.close();
    removeOld(store_.project().projectPath());
  } else if (!file_.isEmpty()) {
    QFile::remove(part);
  }
  end();
}

}  // namespace stepscope
