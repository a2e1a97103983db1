// SPDX-License-Identifier: GPL-3.0-or-later
// What is recorded besides builds and steps, and how recording goes.
#include "app/workbench/ledger_record.h"
#include "app/workbench/project_files.h"
#include "app/workbench/recording.h"
#include "views/common/findings.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

using Health = storage::RecorderState::Health;

QString whatCanBeDone(storage::ErrorCode cause) {
  switch (cause) {
    case storage::ErrorCode::kDiskFull: return QStringLiteral("make room on its disk");
    case storage::ErrorCode::kLocked: return QStringLiteral("end the other program that writes it");
    default: return QStringLiteral("see that the file can be written");
  }
}

QString lostText(const storage::RecorderState& state) {
  if (state.lost == 0) return QStringLiteral("Nothing is lost yet");
  return state.lostSteps > 0 ? QStringLiteral("%1 records are lost, %2 steps among them")
                                   .arg(format::count(state.lost), format::count(state.lostSteps))
                             : QStringLiteral("%1 records are lost").arg(format::count(state.lost));
}

// What is lost, that it is tried again, and what one can do.
QString troubleOf(const storage::RecorderState& state) {
  const QString why = format::visible(state.message);
  if (state.health == Health::kStopped)
    return QStringLiteral(
               "Recording stopped: %1. The training goes on; its steps from here on are not kept (%2 are on disk). "
               "A new run records again")
        .arg(why, format::count(state.committedSteps));
  return QStringLiteral(
             "Nothing can be recorded now: %1. The training goes on. %2; %3 of records wait in memory, and above "
             "%4 times of instructions and batches go first, then steps. It is tried again every second: %5")
      .arg(why, lostText(state), format::bytes(static_cast<std::int64_t>(state.waitingBytes)),
           format::bytes(static_cast<std::int64_t>(storage::RecorderSettings().queueBytes)), whatCanBeDone(state.cause));
}

}  // namespace

void Recording::tellState() {
  if (!recording_) return;
  threads_.post([this](Core& core) {
    if (!core.recorder) return;
    threads_.back([this, state = core.recorder->state(), path = core.path] {
      if (recording_) showState(state, path);
    });
  });
}

void Recording::showState(const storage::RecorderState& state, const QString& path) {
  const QString tip = QStringLiteral("%1\n%2 steps on disk, %3 waiting, %4 records lost")
                          .arg(format::visible(path), format::count(state.committedSteps), format::count(state.waiting),
                               format::count(state.lost));
  if (state.health == Health::kRecording) {
    emit stateChanged(state.lost > 0 ? QStringLiteral("recording, records lost") : QStringLiteral("recording"),
                      state.lost > 0 ? QStringLiteral("warn") : QStringLiteral("ok"), tip);
    emit troubled({});
    return;
  }
  emit stateChanged(
      state.health == Health::kPaused ? QStringLiteral("recording paused") : QStringLiteral("recording stopped"),
      QStringLiteral("error"), format::visible(state.message) + '\n' + tip);
  emit troubled(troubleOf(state));
}

void Recording::nameRun(qint64 run, const QString& name) {
  threads_.post([this, run, name = name.toStdString(), path = store_.project().projectPath().toStdString()](Core& core) {
    if (core.recorder) return core.recorder->nameRun(name, run);
    if (const auto named = nameInFile(path, run, name); !named)
      threads_.back([this, run, why = format::visible(named.error().message)] {
        emit failed(QStringLiteral("run %1 keeps its name: %2").arg(run).arg(why));
      });
  });
  queries_.refreshRuns();
}

void Recording::alert(const snapshot::Alert& alert) {
  if (!recording_) return;
  threads_.post([alert](Core& core) {
    if (core.recorder) core.recorder->alert(alert);
  });
}

void Recording::takenBack(qint64 step) {
  told_.clear();  // it is written again where it comes again
  if (!recording_) return;
  threads_.post([step](Core& core) {
    if (core.recorder) core.recorder->takenBack(step);
  });
}

void Recording::trials() {
  if (!recording_) return;
  threads_.post([report = store_.findings().trials().report()](Core& core) {
    if (core.recorder) core.recorder->trials(report);
  });
}

void Recording::ledger() {
  if (!recording_) return;
  threads_.post([report = store_.findings().ledger().report()](Core& core) {
    if (core.recorder && report) core.recorder->ledger(ledgerRecord(*report));
  });
}

void Recording::statistics(const snapshot::TensorData& value) {
  if (!recording_ || value.statistics().count() == 0) return;
  std::string now = std::to_string(value.step()) + value.statistics().SerializeAsString();
  std::string& before = told_[value.value()];
  if (now == before) return;
  before = std::move(now);
  threads_.post([step = value.step(), id = value.value(), name = value.name(), statistics = value.statistics()](Core& core) {
    if (core.recorder) core.recorder->tensorStats(step, id, name, statistics);
  });
}

}  // namespace stepscope
