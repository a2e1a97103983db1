// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/bug_bundle.h"

#include <QDateTime>
#include <QDir>
#include <QFile>

#include "views/common/format.h"

namespace stepscope {
namespace {

constexpr int kKept = 20;
const char* const kPrefix = "build-";

QString reportOf(const BugFacts& f) {
  QStringList lines{
      QStringLiteral("%1, while building: phase '%2'%3")
          .arg(f.death.reason, f.death.phase,
               f.death.pass.isEmpty() ? QString() : QStringLiteral(", pass '%1'").arg(f.death.pass)),
      QStringLiteral("version  %1").arg(f.version),
      QStringLiteral("when     %1").arg(QDateTime::currentDateTimeUtc().toString(Qt::ISODate)),
      QStringLiteral("model    %1").arg(f.model.section('/', -1)),
  };
  if (f.machine)
    lines << QStringLiteral("machine  %1, %2 cores, %3 bytes of memory")
                 .arg(format::visible(f.machine->cpu()))
                 .arg(f.machine->cores())
                 .arg(f.machine->memory_bytes());
  for (const GraphPtr& graph : f.death.graphs)
    lines << QStringLiteral("graph    after '%1': %2 nodes")
                 .arg(format::visible(graph->graph().phase()))
                 .arg(graph->graph().nodes_size());
  for (const snapshot::Setting& setting : f.configuration.settings())
    lines << QStringLiteral("set      %1=%2").arg(format::visible(setting.name()), format::visible(setting.value()));
  return lines.join('\n') + '\n';
}

bool write(const QString& path, const QByteArray& bytes) {
  QFile file(path);
  return file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size();
}

}  // namespace

QString writeBugBundle(const QString& among, const BugFacts& facts) {
  const QDir folder(among);
  const QString stamp = QDateTime::currentDateTimeUtc().toString(QStringLiteral("yyyyMMdd-HHmmss-zzz"));
  const QString path = folder.filePath(QString::fromLatin1(kPrefix) + stamp);
  if (!QDir().mkpath(path)) return {};
  bool good = write(path + QStringLiteral("/report.txt"), reportOf(facts).toUtf8()) &&
              write(path + QStringLiteral("/log.txt"), facts.log.join('\n').toUtf8());
  if (!facts.death.graphs.empty()) {
    const std::string graph = facts.death.graphs.back()->graph().SerializeAsString();
    good = write(path + QStringLiteral("/graph.pb"), QByteArray::fromStdString(graph)) && good;
  }
  QStringList all = folder.entryList({QString::fromLatin1(kPrefix) + '*'}, QDir::Dirs, QDir::Name);
  while (all.size() > kKept) QDir(folder.filePath(all.takeFirst())).removeRecursively();
  return good ? path : QString();
}

}  // namespace stepscope
