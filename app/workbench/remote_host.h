// SPDX-License-Identifier: GPL-3.0-or-later
// A machine whose worker this window works with, through ssh: no port is opened, and who may log in is ssh's business. Or
// the loop of a script that runs there, or here, in the place of a worker (engine/wire/attach_socket.h).
#pragma once

#include <QString>
#include <QStringList>

namespace stepscope {

struct RemoteHost {
  QString host;         // as ssh takes it: a name, user@name, or one of its configuration; empty: this machine
  QString program;      // stepscope there; empty: the one that a shell there finds
  QString attach = {};  // number of the script's process, or its socket; empty: a worker of our own

  bool local() const { return host.isEmpty(); }
  bool attached() const { return !attach.isEmpty(); }
  bool operator==(const RemoteHost&) const = default;
};

struct HostCommand {
  QString program;
  QStringList arguments;
};

// Why ssh cannot be asked for it; empty: it can.
QString problemOf(const RemoteHost& host);
// A line for the shell of that machine. STEPSCOPE_SSH names another program than ssh: it gets the same words.
HostCommand shellCommand(const RemoteHost& host, const QString& line);
// The worker there, or what stands between this window and the script there.
HostCommand workerCommand(const RemoteHost& host);
QStringList workerArguments(const RemoteHost& host);
// One word of a shell's line, whatever stands in it.
QString quoted(const QString& word);
// Why there is no worker: what its command ended with, and said last.
QString whyNoWorker(const RemoteHost& host, int exitCode, const QString& said);
// Empty where the worker is of the version of this window.
QString problemOfVersion(const RemoteHost& host, const QString& version);

}  // namespace stepscope
