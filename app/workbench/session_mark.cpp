// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session_mark.h"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QObject>
#include <QUuid>

#include "engine/snapshot/worker.pb.h"
#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr qint64 kMostBytes = 1 << 20;

QJsonValue packed(const QByteArray& bytes) { return QString::fromLatin1(bytes.toBase64()); }
QByteArray unpacked(const QJsonValue& value) { return QByteArray::fromBase64(value.toString().toLatin1()); }

QJsonArray jsonOf(const std::vector<PlaceEdit>& edits) {
  QJsonArray all;
  for (const PlaceEdit& e : edits) {
    QJsonObject o{{QStringLiteral("instruction"), e.instruction},
                  {QStringLiteral("request"), packed(e.request)},
                  {QStringLiteral("value"), e.value}};
    if (e.before) o[QStringLiteral("before")] = *e.before;
    all.append(o);
  }
  return all;
}

std::vector<PlaceEdit> editsOf(const QJsonArray& all) {
  std::vector<PlaceEdit> edits;
  for (const QJsonValue& e : all) {
    const QJsonValue before = e[QStringLiteral("before")];
    edits.push_back({e[QStringLiteral("instruction")].toInt(-1), unpacked(e[QStringLiteral("request")]),
                     e[QStringLiteral("value")].toString(),
                     before.isDouble() ? std::optional(before.toDouble()) : std::nullopt});
  }
  return edits;
}

}  // namespace

bool isDropped(const PlaceEdit& edit) {
  snapshot::Request request;
  return edit.instruction >= 0 && request.ParseFromArray(edit.request.constData(), static_cast<int>(edit.request.size())) &&
         !request.edit().path().empty();
}

QByteArray jsonOf(const SessionPlace& p) {
  return QJsonDocument(QJsonObject{{QStringLiteral("path"), p.path},
                                   {QStringLiteral("configuration"), packed(p.configuration)},
                                   {QStringLiteral("breakpoints"), packed(p.breakpoints)},
                                   {QStringLiteral("step"), p.step},
                                   {QStringLiteral("instruction"), p.instruction},
                                   {QStringLiteral("selected_instruction"), p.selectedInstruction},
                                   {QStringLiteral("selected_value"), p.selectedValue},
                                   {QStringLiteral("layout"), packed(p.layout)},
                                   {QStringLiteral("edited"), p.edited},
                                   {QStringLiteral("state"), p.state},
                                   {QStringLiteral("run"), p.run},
                                   {QStringLiteral("edits"), jsonOf(p.edits)}})
      .toJson(QJsonDocument::Compact);
}

std::optional<SessionPlace> readPlace(const QString& path, QString* problem) {
  const auto refuse = [&](const QString& found) {
    if (problem)
      *problem = QStringLiteral("place '%1': found %2; expected where a window stood; it is not offered")
                     .arg(format::visible(path), found);
    return std::nullopt;
  };
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return refuse(file.errorString());
  if (file.size() > kMostBytes) return refuse(QStringLiteral("%1 bytes").arg(file.size()));
  QJsonParseError error;
  const QJsonDocument document = QJsonDocument::fromJson(file.readAll(), &error);
  if (!document.isObject())
    return refuse(document.isNull() ? QStringLiteral("%1 at byte %2").arg(error.errorString()).arg(error.offset)
                                    : QStringLiteral("no JSON object"));
  const QJsonObject o = document.object();
  SessionPlace p;
  p.path = o[QStringLiteral("path")].toString();
  p.configuration = unpacked(o[QStringLiteral("configuration")]);
  p.breakpoints = unpacked(o[QStringLiteral("breakpoints")]);
  p.step = o[QStringLiteral("step")].toInteger();
  p.instruction = o[QStringLiteral("instruction")].toInt(-1);
  p.selectedInstruction = o[QStringLiteral("selected_instruction")].toInt(-1);
  p.selectedValue = o[QStringLiteral("selected_value")].toInt(-1);
  p.layout = unpacked(o[QStringLiteral("layout")]);
  p.edited = o[QStringLiteral("edited")].toBool();
  p.state = o[QStringLiteral("state")].toString();
  p.run = o[QStringLiteral("run")].toInteger();
  p.edits = editsOf(o[QStringLiteral("edits")].toArray());
  if (p.path.isEmpty()) return refuse(QStringLiteral("no path"));
  if (p.step < 0) return refuse(QStringLiteral("step %1").arg(p.step));
  return p;
}

namespace {
QString lockOf(const QString& file) { return file + QStringLiteral(".lock"); }
}  // namespace

SessionMark::SessionMark(const QString& folder)
    : folder_(folder), file_(folder + '/' + QUuid::createUuid().toString(QUuid::WithoutBraces) + QStringLiteral(".json")) {}

void SessionMark::keep(const SessionPlace& place) {
  if (lock_ && place == kept_) return;
  if (!lock_) {
    QDir().mkpath(folder_);
    lock_ = std::make_unique<QLockFile>(lockOf(file_));
    lock_->setStaleLockTime(0);  // age says nothing: a window stands open for days
    if (!lock_->tryLock(0)) {
      lock_.reset();
      return;
    }
  }
  QFile file(file_);
  if (file.open(QIODevice::WriteOnly | QIODevice::Truncate)) file.write(jsonOf(place));
  kept_ = place;
}

void SessionMark::drop() {
  if (!lock_) return;
  QFile::remove(file_);
  lock_.reset();
}

std::optional<SessionPlace> SessionMark::takeLost(QString* problem, const QString& path) {
  std::optional<SessionPlace> newest;
  for (const QFileInfo& info : QDir(folder_).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Time)) {
    QLockFile lock(lockOf(info.filePath()));
    lock.setStaleLockTime(0);
    if (!lock.tryLock(0)) continue;  // its window is there
    if (!newest || !path.isEmpty()) {
      std::optional<SessionPlace> place = readPlace(info.filePath(), problem);
      if (!path.isEmpty() && (!place || place->path != path)) continue;
      if (!newest) newest = std::move(place);
    }
    QFile::remove(info.filePath());
  }
  return newest;
}

}  // namespace stepscope
