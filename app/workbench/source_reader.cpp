// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/source_reader.h"

#include <QFile>
#include <QFileInfo>

namespace stepscope {
namespace {

constexpr qint64 kMostBytes = 4 << 20;

SourceText readLines(const QString& path) {
  const QFileInfo info(path);
  if (!info.exists()) return {{}, QStringLiteral("not found")};
  if (!info.isFile()) return {{}, QStringLiteral("not a file")};
  if (info.size() > kMostBytes)
    return {{}, QStringLiteral("%1 bytes; expected at most %2").arg(info.size()).arg(kMostBytes)};
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {{}, file.errorString()};
  const QByteArray bytes = file.read(kMostBytes);
  if (bytes.contains('\0')) return {{}, QStringLiteral("not a text file")};
  SourceText text;
  text.lines = QString::fromUtf8(bytes).split('\n');
  for (QString& line : text.lines) {
    if (line.endsWith('\r')) line.chop(1);
  }
  if (!text.lines.isEmpty() && text.lines.last().isEmpty()) text.lines.removeLast();
  return text;
}

}  // namespace

void SourceReader::read(const QString& path) {
  pool_.start([this, path] {
    QMetaObject::invokeMethod(
        this, [this, path, text = readLines(path)] { findings_.setSource(path, text); }, Qt::QueuedConnection);
  });
}

}  // namespace stepscope
