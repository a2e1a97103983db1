// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/recompute/plan_entries.h"

#include <QStringList>

namespace stepscope {
namespace {

bool readEntry(const QString& entry, QString* pattern, qint64* count) {
  const auto second = entry.lastIndexOf(':'), first = second > 0 ? entry.lastIndexOf(':', second - 1) : -1;
  if (first <= 0) return false;
  bool number = false;
  *pattern = entry.left(first).trimmed();
  *count = entry.mid(second + 1).trimmed().toLongLong(&number);
  const QString kind = entry.mid(first + 1, second - first - 1).trimmed();
  if (kind == u"0") *count = 0;
  return number && !pattern->isEmpty() && (kind == u"0" || kind == u"1") && *count >= kAllOccurrences;
}

}  // namespace

std::map<QString, qint64> planEntries(const QString& text) {
  std::map<QString, qint64> entries;
  for (const QString& entry : text.split(',')) {
    QString pattern;
    qint64 count = 0;
    if (readEntry(entry, &pattern, &count)) entries[pattern] = count;
  }
  return entries;
}

QString withPlanEntry(const QString& text, const QString& pattern, qint64 count) {
  QStringList entries;
  for (const QString& entry : text.split(',', Qt::SkipEmptyParts)) {
    QString name;
    qint64 had = 0;
    if (!entry.trimmed().isEmpty() && !(readEntry(entry, &name, &had) && name == pattern)) entries << entry.trimmed();
  }
  if (count != 0) entries << QStringLiteral("%1:1:%2").arg(pattern).arg(count);
  return entries.join(',');
}

}  // namespace stepscope
