// SPDX-License-Identifier: GPL-3.0-or-later
// A machine whose worker this window works with, through ssh: no port is opened, and who may log in is ssh's business.
#pragma once

#include <QString>
#include <QStringList>

namespace stepscope {

struct RemoteHost {
  QString host;     // as ssh takes it: a name, user@name, or one of its configuration; empty: this machine
  QString program;  // stepscope there; empty: the one that a shell there finds

  bool local() const { return host.isEmpty(); }
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
// The worker there.
HostCommand workerCommand(const RemoteHost& host);
// One word of a shell's line, whatever stands in it.
QString quoted(const QString& word);
// Why there is no worker: what its command ended with, and said last.
QString whyNoWorker(const RemoteHost& host, int exitCode, const QString& said);
// Empty where the worker is of the version of this window.
QString problemOfVersion(const RemoteHost& host, const QString& version);

}  // namespace stepscope
