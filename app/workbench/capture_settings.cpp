// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/capture_settings.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

namespace stepscope {
namespace {

constexpr qint64 kMostBytes = 16 << 20;

// As the patterns of --freeze take it.
QString escaped(const QString& name) {
  QString out;
  for (const QChar c : name) {
    if (QStringLiteral(".^$|()[]{}*+?\\/").contains(c)) out += '\\';
    out += c;
  }
  return out;
}

// Of the capture that the model belongs to; empty where there is none.
QJsonDocument captureOf(const QString& model) {
  QFile file(QFileInfo(model).absoluteDir().filePath(QStringLiteral("capture.json")));
  if (file.size() > kMostBytes || !file.open(QIODevice::ReadOnly)) return {};
  return QJsonDocument::fromJson(file.readAll());
}

}  // namespace

QStringList captureNotes(const QString& model) {
  QStringList notes;
  for (const QJsonValue& note : captureOf(model)[QStringLiteral("notes")].toArray())
    if (!note.toString().isEmpty()) notes << note.toString();
  return notes;
}

snapshot::Configure captureSettings(const QString& model) {
  snapshot::Configure out;
  const QDir folder = QFileInfo(model).absoluteDir();
  const QJsonDocument json = captureOf(model);
  if (!json.isObject()) return out;
  const auto set = [&out](const char* name, const QString& value) {
    if (value.isEmpty()) return;
    auto* setting = out.add_settings();
    setting->set_name(name);
    setting->set_value(value.toStdString());
  };
  const QString data = folder.filePath(QStringLiteral("batches.npz"));
  if (QFileInfo::exists(data)) set("data", data);
  QStringList frozen;
  for (const QJsonValue& parameter : json[QStringLiteral("parameters")].toArray())
    if (!parameter[QStringLiteral("trained")].toBool(true) && !parameter[QStringLiteral("name")].toString().isEmpty())
      frozen << escaped(parameter[QStringLiteral("name")].toString());
  if (!frozen.isEmpty()) set("freeze", QStringLiteral("^(%1)$").arg(frozen.join('|')));
  for (const QJsonValue& setting : json[QStringLiteral("settings")].toArray()) {
    const QString name = setting[0].toString(), value = setting[1].toString();
    set(name.toUtf8().constData(), name == u"start-state" && !value.isEmpty() ? folder.filePath(value) : value);
  }
  return out;
}

}  // namespace stepscope
