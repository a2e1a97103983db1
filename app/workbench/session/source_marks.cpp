// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session/source_marks.h"

#include <QDirIterator>
#include <QFileInfo>

#include "views/common/format.h"

namespace stepscope {
namespace {
constexpr int kMostOfAFolder = 1'000;  // files
}  // namespace

SourceMarks::Mark SourceMarks::markOf(const QString& path) {
  const QFileInfo file(path);
  return file.isFile() ? Mark{path, file.size(), file.lastModified()} : Mark{path, -1, {}};
}

void SourceMarks::take(const QStringList& paths) {
  marks_.clear();
  for (const QString& path : paths) {
    if (QFileInfo(path).isFile()) marks_.push_back(markOf(path));
    if (!QFileInfo(path).isDir()) continue;
    QDirIterator files(path, QDir::Files);
    for (int n = 0; n < kMostOfAFolder && files.hasNext(); ++n) marks_.push_back(markOf(files.next()));
  }
}

QStringList SourceMarks::takeChanges() {
  const auto text = [](const Mark& mark) {
    return QStringLiteral("%1 of %2").arg(format::bytesExact(mark.bytes), mark.written.toString(QStringLiteral("HH:mm:ss")));
  };
  QStringList changes;
  for (Mark& mark : marks_) {
    Mark now = markOf(mark.path);
    if (now == mark) continue;
    if (now.bytes < 0)
      changes << QStringLiteral("'%1' is gone; it had %2").arg(mark.path, text(mark));
    else if (mark.bytes < 0)
      changes << QStringLiteral("'%1' is there again, %2").arg(mark.path, text(now));
    else
      changes << QStringLiteral("'%1' was written again: %2, before %3").arg(mark.path, text(now), text(mark));
    mark = std::move(now);
  }
  return changes;
}

}  // namespace stepscope
