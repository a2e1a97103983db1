// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/recording_wiring.h"

#include <QTimer>
#include <utility>

#include "app/workbench/notice_bar.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/recent_files.h"
#include "app/workbench/recording.h"
#include "app/workbench/status_line.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr int kRunsAfterMs = 400;

QString settingOf(const snapshot::Configure& configuration, const char* name) {
  QString found;
  for (const auto& s : configuration.settings()) {
    if (s.name() == name) found = QString::fromStdString(s.value());
  }
  return found;
}

}  // namespace

RecordingWiring::RecordingWiring(const WindowParts& parts, RecentFiles& files, bool remember)
    : parts_(parts),
      session_(parts.session),
      recording_(parts.recording),
      files_(files),
      remember_(remember),
      keeper_(parts.store, parts.session),
      log_(parts) {
  connectSession();
  connectNotices();
}

void RecordingWiring::connectSession() {
  connect(&session_, &ModelSession::builtChanged, this, &RecordingWiring::builtChanged);
  // A model that is looked at has no runs yet, and those of the project that was open are not its own.
  connect(&session_, &ModelSession::modelInspected, this, [this] {
    if (!session_.built() && !session_.comingBack() && !recording_.recording()) recording_.queries().closeProject();
  });
  connect(&session_, &ModelSession::phasesTold, &recording_, &Recording::phases);
  connect(&session_, &ModelSession::planRebuilt, this, [this] {
    recording_.build();
    keeper_.begin();
  });
  connect(&session_, &ModelSession::planResumed, &recording_, &Recording::planResumed);
  connect(&session_, &ModelSession::planShown, &keeper_, &BuildKeeper::beginAgain);
  connect(&keeper_, &BuildKeeper::verdictsRead, &recording_, &Recording::determinism);
  connect(&keeper_, &BuildKeeper::stageRead, &recording_, &Recording::stage);
  auto* runs = new QTimer(this);
  runs->setSingleShot(true);
  runs->setInterval(kRunsAfterMs);
  connect(runs, &QTimer::timeout, &recording_.queries(), &ProjectQueries::refreshRuns);
  connect(&session_, &ModelSession::busyChanged, this, [this, runs] {
    // The list of runs follows when the work pauses, not with every step.
    if (session_.built() && !session_.busy() && !session_.running()) runs->start();
  });
  connect(&session_, &ModelSession::stepRecorded, &recording_, &Recording::step);
  session_.setHold([this] { return recording_.behind(); });
  connect(&session_, &ModelSession::tookBack, &recording_, &Recording::takenBack);
  connect(&session_, &ModelSession::watchedRead, &recording_, &Recording::statistics);
  connect(&session_, &ModelSession::alertRaised, &recording_, &Recording::alert);
  connect(&session_, &ModelSession::alertStands, &recording_, &Recording::alert);
}

void RecordingWiring::connectNotices() {
  connect(&recording_, &Recording::stateChanged, &parts_.status, &StatusLine::setRecorder);
  connect(&recording_, &Recording::troubled, this, [this](const QString& text) {
    const QString id = QStringLiteral("recording");
    if (text.isEmpty()) return parts_.notice.clearStanding(id);
    parts_.notice.stand(id, NoticeBar::Standing::kFault, text, {}, {});
  });
  connect(&recording_, &Recording::failed, this, [this](const QString& text) { parts_.notice.showProblem(text, {}, {}); });
  connect(&recording_, &Recording::reported, this,
          [this](const QString& path) { parts_.status.note(QStringLiteral("Saved %1").arg(format::visible(path))); });
  connect(&recording_.queries(), &ProjectQueries::told, &parts_.status, &StatusLine::note);
  connect(&recording_, &Recording::opening, this, [this] {
    if (!parts_.store.readOnly()) session_.close();
  });
  connect(&recording_, &Recording::elsewhere, this, [this](const QString& path, const QString& why) {
    files_.note(path);
    parts_.notice.showProblem(why, {}, {});
  });
  connect(&recording_, &Recording::besideAnother, this, [this](const QString& path) {
    files_.note(path);
    parts_.status.note(QStringLiteral("Another window records this model; this run goes into %1")
                           .arg(format::visible(path.section('/', -1))));
  });
  connect(&recording_, &Recording::opened, this, [this](const QString& path) { files_.note(path); });
  connect(&recording_, &Recording::damaged, this, [this](const QStringList& warnings) {
    const int more = static_cast<int>(warnings.size()) - 1;
    const QString text =
        more > 0
            ? QStringLiteral("%1. What can be read is shown; %2 more in Alerts").arg(warnings.value(0), format::count(more))
            : QStringLiteral("%1. What can be read is shown").arg(warnings.value(0));
    parts_.notice.showProblem(text, QStringLiteral("Show alerts"), [this] { parts_.board.show(QStringLiteral("alerts")); });
  });
}

void RecordingWiring::builtChanged() {
  if (!session_.built()) {
    recording_.end(storage::RunStatus::kFinished);
    startState_.clear();
    return;
  }
  // What a new worker goes on with is the run of the one that died.
  if (!session_.comingBack() || !recording_.recording()) {
    begin();
    if (!session_.attached()) {
      files_.note(session_.modelPath());
      files_.noteSetUp(session_.modelPath(), session_.configuration());
    }
    emit runBegun();
  }
  recording_.phases();
  recording_.build();
  keeper_.begin();
}

QString RecordingWiring::pathFor(const QString& model) const {
  if (!projectPath_.isEmpty()) return projectPath_;
  const QString folder = remember_ ? RecentFiles::projectFolder() : scratch_.path();
  return folder + '/' + RecentFiles::projectName(session_.client().host().host, model) + QStringLiteral(".stepscope");
}

// A build that goes on with the state that there is begins a run all the same: of other settings.
std::string RecordingWiring::origin() {
  const QString file = settingOf(session_.configuration(), "start-state");
  const bool loaded = !file.isEmpty() && std::exchange(startState_, file) != file;
  const auto from = std::exchange(origin_, std::nullopt);
  const auto step = parts_.store.position().step();
  const auto text = [](qint64 run, qint64 before) {
    return QStringLiteral("from run %1 at step %2").arg(run).arg(before).toStdString();
  };
  if (from) return text(from->first, from->second);
  if (loaded) return QStringLiteral("from %1").arg(file).toStdString();
  if (step > 0 && recording_.recording() && recording_.run() > 0) return text(recording_.run(), step);
  return {};
}

void RecordingWiring::begin() {
  const SnapshotStore& store = parts_.store;
  const QString path = pathFor(session_.modelPath());
  const auto& configuration = session_.configuration();
  storage::RunInfo info;
  info.modelPath = session_.modelPath().toStdString();
  info.threads = settingOf(configuration, "threads").toInt();
  if (info.threads == 0 && store.machine()) info.threads = store.machine()->cores();
  info.seed = settingOf(configuration, "seed").toLongLong();
  info.optimizer =
      settingOf(configuration, "optimizer").isEmpty() ? "sgd" : settingOf(configuration, "optimizer").toStdString();
  if (const GraphPtr& graph = store.graph()) {
    if (const auto* loss = graph->value(graph->graph().loss())) info.lossName = loss->name();
  }
  if (store.model()) info.model = *store.model();
  if (store.machine()) info.machine = *store.machine();
  info.options = store.options();
  if (std::string weights = origin(); !weights.empty()) info.weights = std::move(weights);
  recording_.begin(path, std::move(info));
  files_.note(path);
}

}  // namespace stepscope
