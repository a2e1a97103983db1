// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/project_files.h"

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>
#include <utility>

#include "storage/queries.h"
#include "storage/retention.h"
#include "storage/run_name.h"
#include "storage/writer_lock.h"

namespace stepscope {
namespace {

storage::Result<std::unique_ptr<storage::Recorder>> recorderOf(const QString& path) {
  auto project = storage::Project::openForWriting(path.toStdString());
  if (!project) return tl::make_unexpected(project.error());
  return storage::Recorder::start(std::move(*project));
}

}  // namespace

StartedRecorder startRecorder(const QString& path) {
  StartedRecorder started;
  const QFileInfo file(path);
  QDir().mkpath(file.absolutePath());
  constexpr int kMostWindows = 9;  // that record one model
  for (int n = 1; n <= kMostWindows; ++n) {
    const QString at =
        n == 1 ? path : file.absolutePath() + '/' + file.completeBaseName() + QStringLiteral("-%1.stepscope").arg(n);
    auto recorder = recorderOf(at);
    if (recorder) {
      started.recorder = std::move(*recorder);
      started.path = at;
      return started;
    }
    started.why = recorder.error().message;
    if (recorder.error().code != storage::ErrorCode::kLocked) break;
  }
  QTemporaryDir folder(QDir::tempPath() + QStringLiteral("/stepscope-XXXXXX"));
  const QString refuge = folder.filePath(file.fileName());
  if (auto recorder = recorderOf(refuge)) {
    folder.setAutoRemove(false);
    started.recorder = std::move(*recorder);
    started.path = refuge;
    started.refuge = true;
  }
  return started;
}

storage::Result<bool> deleteFromFile(const std::string& path, std::int64_t run) {
  auto project = storage::Project::openForWriting(path);
  if (!project) return tl::make_unexpected(project.error());
  const auto newest = storage::newestRun(*project);
  if (const auto deleted = storage::deleteRun(*project, run); !deleted) return tl::make_unexpected(deleted.error());
  return newest && *newest == run;
}

storage::Status nameInFile(const std::string& path, std::int64_t run, const std::string& name) {
  auto project = storage::Project::openForWriting(path);
  if (!project) return tl::make_unexpected(project.error());
  return storage::nameRun(*project, run, name);
}

QString whyNotWritable(const QString& path) {
  const QFileInfo file(path), folder(file.absolutePath());
  if (!file.isWritable()) return QStringLiteral("The file of this project may not be written");
  if (!folder.isWritable()) return QStringLiteral("The folder of this project may not be written");
  if (storage::WriterLock::isHeld(file.absoluteFilePath().toStdString()))
    return QStringLiteral("Another window or program records into this project");
  return {};
}

}  // namespace stepscope
