// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/findings.h"

#include <QRegularExpression>

#include "views/common/format.h"

namespace stepscope {
namespace {

// "recompute.budget = 8220288": a size has its unit.
QString withSizes(QString change) {
  static const QRegularExpression kSize(QStringLiteral("\\.(?:budget|limit) = (\\d{4,18})\\b"));
  qsizetype from = 0;
  for (auto match = kSize.match(change); match.hasMatch(); match = kSize.match(change, from)) {
    const QString with = format::bytes(match.captured(1).toLongLong());
    change.replace(match.capturedStart(1), match.capturedLength(1), with);
    from = match.capturedStart(1) + with.size();
  }
  return change;
}

// "arena 12.0 MiB → 8.00 MiB", or "same arena".
QString beforeAfter(QStringView what, std::int64_t before, std::int64_t after) {
  return before == after ? QStringLiteral("same %1").arg(what)
                         : QStringLiteral("%1 %2 → %3").arg(what, format::bytes(before), format::bytes(after));
}

}  // namespace

QString Findings::optionProofText(QString* role) const {
  *role = QStringLiteral("muted");
  if (!optionProof_) return {};
  const snapshot::OptionProof& p = *optionProof_;
  const QString change = withSizes(format::visible(p.change()));
  if (!p.unavailable().empty())
    return QStringLiteral("%1: not compared with the plan before (%2)").arg(change, format::visible(p.unavailable()));
  const QString memory =
      QStringLiteral("%1, %2").arg(beforeAfter(u"arena", p.before_arena_bytes(), p.after_arena_bytes()),
                                   beforeAfter(u"peak of values", p.before_peak_bytes(), p.after_peak_bytes()));
  const QString step = format::count(p.step());
  if (p.equal() && p.values() == 0)
    return QStringLiteral("%1: nothing to compare yet in step %2, %3").arg(change, step, memory);
  const QString place =
      p.instruction() > 0
          ? QStringLiteral("in memory before instruction %1 of step %2").arg(format::count(p.instruction()), step)
          : QStringLiteral("after the whole of step %1, run under both plans").arg(step);
  if (p.equal()) {
    *role = QStringLiteral("ok");
    const QString values =
        p.values() == 1 ? QStringLiteral("1 value") : QStringLiteral("%1 values").arg(format::count(p.values()));
    return QStringLiteral("%1: bits equal (%2 %3), %4").arg(change, values, place, memory);
  }
  *role = QStringLiteral("warn");
  return QStringLiteral("%1: %2 of %3 values differ (%4), at most by %5 in %6; %7")
      .arg(change, format::count(p.differing()), format::count(p.values()), place, format::number(p.max_abs()),
           format::visible(p.worst()), memory);
}

}  // namespace stepscope
