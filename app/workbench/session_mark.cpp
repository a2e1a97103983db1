// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/session_mark.h"

#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QUuid>

namespace stepscope {
namespace {

constexpr qint64 kMostBytes = 1 << 20;

QJsonValue packed(const QByteArray& bytes) { return QString::fromLatin1(bytes.toBase64()); }
QByteArray unpacked(const QJsonValue& value) { return QByteArray::fromBase64(value.toString().toLatin1()); }

QByteArray write(const SessionPlace& p) {
  return QJsonDocument(QJsonObject{{QStringLiteral("path"), p.path},
                                   {QStringLiteral("configuration"), packed(p.configuration)},
                                   {QStringLiteral("breakpoints"), packed(p.breakpoints)},
                                   {QStringLiteral("step"), p.step},
                                   {QStringLiteral("instruction"), p.instruction},
                                   {QStringLiteral("selected_instruction"), p.selectedInstruction},
                                   {QStringLiteral("selected_value"), p.selectedValue},
                                   {QStringLiteral("layout"), packed(p.layout)},
                                   {QStringLiteral("edited"), p.edited}})
      .toJson(QJsonDocument::Compact);
}

std::optional<SessionPlace> read(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly) || file.size() > kMostBytes) return std::nullopt;
  const QJsonObject o = QJsonDocument::fromJson(file.readAll()).object();
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
  return p.path.isEmpty() || p.step < 0 ? std::nullopt : std::optional(p);
}

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
  if (file.open(QIODevice::WriteOnly | QIODevice::Truncate)) file.write(write(place));
  kept_ = place;
}

void SessionMark::drop() {
  if (!lock_) return;
  QFile::remove(file_);
  lock_.reset();
}

std::optional<SessionPlace> SessionMark::takeLost() {
  std::optional<SessionPlace> newest;
  for (const QFileInfo& info : QDir(folder_).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Time)) {
    QLockFile lock(lockOf(info.filePath()));
    lock.setStaleLockTime(0);
    if (!lock.tryLock(0)) continue;  // its window is there
    if (!newest) newest = read(info.filePath());
    QFile::remove(info.filePath());
  }
  return newest;
}

}  // namespace stepscope
