// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/scratch_folder.h"

#include <unistd.h>

#include <QFileInfo>

namespace stepscope {
namespace {

QString lockOf(const QString& folder) { return folder + QStringLiteral("/.lock"); }

std::unique_ptr<QLockFile> lock(const QString& folder) {
  auto lock = std::make_unique<QLockFile>(lockOf(folder));
  lock->setStaleLockTime(0);  // age says nothing: a window stands open for days
  return lock->tryLock(0) ? std::move(lock) : nullptr;
}

}  // namespace

ScratchFolder::ScratchFolder(const QString& among) : folder_(among + QStringLiteral("/stepscope-workbench-XXXXXX")) {
  if (folder_.isValid()) lock_ = lock(folder_.path());
}

int ScratchFolder::sweep(const QString& among) {
  int removed = 0;
  for (const QFileInfo& info : QDir(among).entryInfoList({QStringLiteral("stepscope-workbench-*")},
                                                         QDir::Dirs | QDir::NoSymLinks | QDir::NoDotAndDotDot)) {
    // Without a lock it was made this moment, or not by this program.
    if (info.ownerId() != getuid() || !QFileInfo::exists(lockOf(info.filePath())) || !lock(info.filePath())) continue;
    removed += QDir(info.filePath()).removeRecursively();
  }
  return removed;
}

}  // namespace stepscope
