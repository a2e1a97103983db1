// SPDX-License-Identifier: GPL-3.0-or-later
// A folder for what need not outlive this process. What a process that was killed left behind, the next one that sweeps
// removes: a lock in the folder tells whether its process is there.
#pragma once

#include <QDir>
#include <QLockFile>
#include <QTemporaryDir>
#include <memory>

namespace stepscope {

class ScratchFolder {
 public:
  explicit ScratchFolder(const QString& among = QDir::tempPath());

  bool isValid() const { return folder_.isValid(); }
  QString path() const { return folder_.path(); }
  QString filePath(const QString& name) const { return folder_.filePath(name); }

  // Removes the folders of this user whose processes are gone, and says how many. Any thread.
  static int sweep(const QString& among = QDir::tempPath());

 private:
  QTemporaryDir folder_;
  std::unique_ptr<QLockFile> lock_;  // goes before the folder
};

}  // namespace stepscope
