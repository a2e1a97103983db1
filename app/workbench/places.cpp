// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/places.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>

#include "views/common/format.h"

namespace stepscope {
namespace {

// Of a model, or of what was recorded of one.
Place openedFrom(const QDir& folder) {
  const QStringList models = folder.entryList({QStringLiteral("*.onnx")}, QDir::Files, QDir::Name);
  if (models.contains(QStringLiteral("model.onnx"))) return {folder.filePath(QStringLiteral("model.onnx")), {}};
  if (models.size() == 1) return {folder.filePath(models.first()), {}};
  const QString name = format::visible(folder.path());
  const QStringList projects = folder.entryList({QStringLiteral("*.stepscope")}, QDir::Files, QDir::Name);
  if (models.isEmpty() && projects.size() == 1) return {folder.filePath(projects.first()), {}};
  if (models.isEmpty() && projects.size() > 1)
    return {{},
            QStringLiteral("folder '%1': %2 recorded projects in it, %3 the first; open one of them")
                .arg(name)
                .arg(projects.size())
                .arg(format::visible(projects.first()))};
  if (models.isEmpty())
    return {{},
            QStringLiteral("folder '%1': no model in it; expected a .onnx or .stepscope file, or a folder with model.onnx")
                .arg(name)};
  return {{},
          QStringLiteral("folder '%1': %2 models in it, %3 the first; open one of them")
              .arg(name)
              .arg(models.size())
              .arg(format::visible(models.first()))};
}

}  // namespace

bool isProject(const QString& path) { return path.endsWith(QStringLiteral(".stepscope"), Qt::CaseInsensitive); }

Place placeToOpen(const QString& path) {
  const QFileInfo info(path);
  const QString absolute = QDir::cleanPath(info.absoluteFilePath());
  if (info.isDir()) return openedFrom(QDir(absolute));
  const bool project = isProject(absolute);
  const QString what = project ? QStringLiteral("project '%1': %2") : QStringLiteral("model '%1': %2");
  const auto refuse = [&](const QString& why) { return Place{{}, what.arg(format::visible(absolute), why)}; };
  if (!info.exists()) return refuse(QStringLiteral("no such file; it was moved, or its name is another"));
  QFile file(absolute);
  if (!file.open(QIODevice::ReadOnly))
    return refuse(QStringLiteral("%1; ask its owner for the right to read it, or copy it").arg(file.errorString()));
  if (info.isFile() && info.size() == 0)
    return refuse(project ? QStringLiteral("the file is empty; expected a recorded .stepscope project")
                          : QStringLiteral("the file is empty; expected an ONNX model"));
  return {absolute, {}};
}

QString copyWithRest(const QString& project, const QString& folder) {
  const QString rest = project + QStringLiteral("-wal");
  if (QFileInfo(rest).size() == 0) return {};
  const QString copy = folder + '/' + QFileInfo(project).fileName();
  QFile::remove(copy);
  QFile::remove(copy + QStringLiteral("-wal"));
  return QFile::copy(project, copy) && QFile::copy(rest, copy + QStringLiteral("-wal")) ? copy : QString();
}

}  // namespace stepscope
