// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/remote_host.h"

#include <algorithm>

#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr int kFailed = 1, kNotExecutable = 126, kNotFound = 127, kSshFailed = 255;

QString programOf(const RemoteHost& host) { return host.program.isEmpty() ? QStringLiteral("stepscope") : host.program; }

}  // namespace

QString problemOf(const RemoteHost& host) {
  const auto bad = [](QChar c) { return c.isSpace() || !c.isPrint() || c == u'\'' || c == u'"'; };
  // A word that begins with a dash would be an option of ssh.
  if (host.host.isEmpty() || host.host.startsWith('-') || std::any_of(host.host.begin(), host.host.end(), bad))
    return QStringLiteral("host '%1': no name of a machine; expected NAME or USER@NAME as ssh takes it")
        .arg(format::visible(host.host));
  if (std::any_of(host.program.begin(), host.program.end(), [](QChar c) { return !c.isPrint(); }))
    return QStringLiteral("program '%1': no path; expected that of stepscope on the other machine")
        .arg(format::visible(host.program));
  return {};
}

QString quoted(const QString& word) {
  QString text = word;
  return '\'' + text.replace('\'', QStringLiteral("'\\''")) + '\'';
}

HostCommand shellCommand(const RemoteHost& host, const QString& line) {
  const QString named = qEnvironmentVariable("STEPSCOPE_SSH");
  // Without a terminal and without questions: nobody could answer them.
  return {named.isEmpty() ? QStringLiteral("ssh") : named,
          {QStringLiteral("-T"), QStringLiteral("-o"), QStringLiteral("BatchMode=yes"), QStringLiteral("-o"),
           QStringLiteral("ConnectTimeout=10"), QStringLiteral("-o"), QStringLiteral("ServerAliveInterval=5"),
           QStringLiteral("--"), host.host, line}};
}

QStringList workerArguments(const RemoteHost& host) {
  QStringList arguments{QStringLiteral("worker")};
  if (host.attached()) arguments << QStringLiteral("--attach") << host.attach;
  return arguments;
}

HostCommand workerCommand(const RemoteHost& host) {
  QString line = QStringLiteral("exec ") + quoted(programOf(host));
  for (const QString& argument : workerArguments(host)) line += ' ' + quoted(argument);
  return shellCommand(host, line);
}

QString whyNoWorker(const RemoteHost& host, int exitCode, const QString& said) {
  const QString name = format::visible(host.host), program = format::visible(programOf(host));
  const QString last = said.trimmed().isEmpty() ? QStringLiteral("nothing was said") : format::visible(said.trimmed());
  if (host.attached() && exitCode == kFailed) {
    const QString error = QStringLiteral("error: ");
    return last.startsWith(error) ? last.mid(error.size()) : last;
  }
  if (exitCode == kSshFailed)
    return QStringLiteral("host '%1': not reached (%2); expected a machine that ssh logs in to without a question")
        .arg(name, last);
  if (exitCode == kNotFound || exitCode == kNotExecutable)
    return QStringLiteral("program '%1': not there on '%2' (%3); expected stepscope; hint: give its path in Connect…")
        .arg(program, name, last);
  return QStringLiteral("program '%1': on '%2' it ended with exit code %3 (%4); expected a worker")
      .arg(program, name)
      .arg(exitCode)
      .arg(last);
}

QString problemOfVersion(const RemoteHost& host, const QString& version) {
  if (host.attached() && version != QLatin1String(STEPSCOPE_VERSION))
    return QStringLiteral("script '%1': its libstepscope is of version %2; expected %3, as this window")
        .arg(format::visible(host.attach), format::visible(version), QStringLiteral(STEPSCOPE_VERSION));
  if (host.local() || version == QLatin1String(STEPSCOPE_VERSION)) return {};
  return QStringLiteral("program '%1': on '%2' it is of version %3; expected %4, as this window")
      .arg(format::visible(programOf(host)), format::visible(host.host), format::visible(version),
           QStringLiteral(STEPSCOPE_VERSION));
}

}  // namespace stepscope
