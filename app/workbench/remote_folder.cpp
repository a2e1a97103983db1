// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/remote_folder.h"

#include <algorithm>
#include <utility>

namespace stepscope {
namespace {
constexpr int kSoonMs = 1000;
constexpr int kFreeField = 3;  // of a line of df -P: system, blocks, used, free …
const QString kName = QStringLiteral("stepscope-states-");
}  // namespace

RemoteFolder::RemoteFolder(const RemoteHost& host) : host_(host) {
  connect(&process_, &QProcess::finished, this, &RemoteFolder::answered);
  soon_.setSingleShot(true);
  soon_.setInterval(kSoonMs);
  connect(&soon_, &QTimer::timeout, this, &RemoteFolder::removeThose);
  ask(QStringLiteral("t=${TMPDIR:-/tmp}; find \"$t\" -maxdepth 1 -user \"$(id -un)\" -name '%1*' -mtime +7 "
                     "-exec rm -rf {} + 2>/dev/null; d=$(mktemp -d \"$t/%1XXXXXX\") && printf '%s\\n' \"$d\" && "
                     "df -Pk \"$d\" | tail -n 1")
          .arg(kName));
}

RemoteFolder::~RemoteFolder() {
  process_.disconnect(this);
  if (process_.state() != QProcess::NotRunning) {
    process_.kill();
    process_.waitForFinished(100);
  }
  if (folder_.isEmpty()) return;
  const HostCommand command = shellCommand(host_, QStringLiteral("rm -rf %1").arg(quoted(folder_)));
  QProcess::startDetached(command.program, command.arguments);
}

void RemoteFolder::ask(const QString& line) {
  const HostCommand command = shellCommand(host_, line);
  process_.start(command.program, command.arguments);
  process_.closeWriteChannel();
}

void RemoteFolder::answered() {
  QStringList lines = QString::fromUtf8(process_.readAllStandardOutput()).split('\n', Qt::SkipEmptyParts);
  if (folder_.isEmpty() && lines.size() == 2 && lines[0].startsWith('/') && lines[0].contains('/' + kName))
    folder_ = lines.takeFirst();
  const QStringList fields = lines.value(0).simplified().split(' ');
  if (fields.size() > kFreeField) free_ = std::max<qint64>(0, fields[kFreeField].toLongLong() * 1024);
  if (!removed_.isEmpty()) soon_.start();
}

QString RemoteFolder::filePath(const QString& name) const { return folder_.isEmpty() ? QString() : folder_ + '/' + name; }

std::int64_t RemoteFolder::bytesOf(const QString&, std::int64_t about) const { return about; }

void RemoteFolder::remove(const QString& path) {
  if (folder_.isEmpty() || !path.startsWith(folder_ + '/')) return;
  removed_ << quoted(path);
  if (!soon_.isActive()) soon_.start();
}

void RemoteFolder::removeThose() {
  if (process_.state() != QProcess::NotRunning) return;  // its end asks again
  const QString words = std::exchange(removed_, {}).join(' ');
  ask(QStringLiteral("rm -f %1; df -Pk %2 | tail -n 1").arg(words, quoted(folder_)));
}

}  // namespace stepscope
