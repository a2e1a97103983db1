// SPDX-License-Identifier: GPL-3.0-or-later
// Files that a run reads, as they were when it was built: a worker that reads them again gets what they hold by then.
#pragma once

#include <QDateTime>
#include <QStringList>
#include <vector>

namespace stepscope {

class SourceMarks {
 public:
  // Marks files as they are now, and those that a folder has (a step's input_*.pb, say). What is neither on this machine is
  // not looked at.
  void take(const QStringList& paths);

  // A sentence for each that was written or removed since, with both sizes and times. It is marked anew: each change is
  // told once.
  QStringList takeChanges();

 private:
  struct Mark {
    QString path;
    qint64 bytes = -1;  // -1: it is gone
    QDateTime written;
    bool operator==(const Mark&) const = default;
  };
  static Mark markOf(const QString& path);

  std::vector<Mark> marks_;
};

}  // namespace stepscope
