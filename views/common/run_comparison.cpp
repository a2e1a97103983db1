// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/run_comparison.h"

#include <QStringList>
#include <set>

#include "views/common/format.h"

namespace stepscope {

QString stepsText(const RunEntry& run) {
  const QString steps = format::count(run.steps);
  return run.lost > 0 ? QStringLiteral("%1, %2 lost").arg(steps, format::count(run.lost)) : steps;
}

QString otherStepsText(const RunEntry& run) {
  QStringList texts;
  if (run.lost > 0)
    texts << QStringLiteral("%1 more were run and could not be recorded; the last loss is that of the last recorded one")
                 .arg(format::count(run.lost));
  if (run.takenBack > 0)
    texts << QStringLiteral("%1 more were run and taken back by a rewind").arg(format::count(run.takenBack));
  return texts.join('\n');
}

std::vector<QString> differences(const std::vector<RunEntry>& runs) {
  std::set<QString> names;
  for (const RunEntry& run : runs)
    for (const auto& [name, value] : run.settings) names.insert(name);
  const auto valueOf = [](const RunEntry& run, const QString& name) {
    const auto it = run.settings.find(name);
    if (it == run.settings.end()) return QStringLiteral("–");  // a program that did not have it yet
    return it->second.isEmpty() ? QStringLiteral("none") : it->second;
  };
  std::vector<QString> out;
  for (const RunEntry& run : runs) {
    QStringList own;
    for (const QString& name : names) {
      bool differ = false;
      for (const RunEntry& other : runs) differ = differ || valueOf(other, name) != valueOf(run, name);
      // What one of many runs had and this one has not says nothing about it.
      const QString value = valueOf(run, name);
      const bool absent = value == QStringLiteral("none") || value == QStringLiteral("–");
      if (differ && !(absent && runs.size() > 2)) own << name + ' ' + value;
    }
    out.push_back(own.join(QStringLiteral(" · ")));
  }
  return out;
}

}  // namespace stepscope
