// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/capacity/capacity_rows.h"

#include <algorithm>
#include <cmath>

#include "views/common/format.h"

namespace stepscope::capacity {
namespace {

TableCell bytes(std::int64_t n) { return {format::bytes(n), QVariant::fromValue<qint64>(n), format::bytesExact(n)}; }

TableCell time(double ns) {
  if (!(ns > 0) || !std::isfinite(ns)) return {QStringLiteral("–"), 0.0, QStringLiteral("Not predicted")};
  const auto whole = static_cast<std::int64_t>(std::min(ns, 9e18));
  return {format::time(whole), ns, format::timeExact(whole)};
}

// "budget=1048576" as "budget 1.0 MiB".
QString recompute(const std::string& words) {
  const QString text = format::visible(words);
  const QString budget = QStringLiteral("budget=");
  const auto size = text.startsWith(budget) ? format::bytesOf(text.mid(budget.size())) : std::nullopt;
  return size ? QStringLiteral("budget %1").arg(format::bytes(*size)) : text;
}

}  // namespace

std::vector<TableColumn> columns(const snapshot::CapacityReport& report) {
  const auto number = [](const QString& title, const QString& tip) { return TableColumn{title, tip, true, 6}; };
  return {number(report.dimension().empty() ? QStringLiteral("Extent") : format::visible(report.dimension()),
                 QStringLiteral("Extent of the dimension that varies; 0: extents as they are")),
          {QStringLiteral("Recompute"), QStringLiteral("The smallest one with which it fits; none: all is kept"), false, 9},
          number(QStringLiteral("Peak"), QStringLiteral("Memory that the plan needs: arena, state, constants and batch")),
          number(QStringLiteral("Arena"), QStringLiteral("Of it: activations, gradients, workspaces")),
          number(QStringLiteral("State"), QStringLiteral("Of it: parameters, optimizer state, statistics")),
          {QStringLiteral("Fits"), QStringLiteral("Whether the peak is at most the memory that was asked about"), false, 5},
          number(QStringLiteral("Step at least"),
                 QStringLiteral("Sum of the least times of its instructions by the roofline of this machine")),
          number(QStringLiteral("Per sample"), QStringLiteral("That, divided by the samples of a batch")),
          number(QStringLiteral("Run again"), QStringLiteral("Instructions that run a second time for recompute"))};
}

std::vector<TableRow> rows(const snapshot::CapacityReport& report) {
  std::vector<TableRow> out;
  for (int i = 0; i < report.points_size(); ++i) {
    const auto& p = report.points(i);
    TableRow row;
    row.key = i;
    TableCell fits(p.fits() ? QStringLiteral("fits") : QStringLiteral("no"), p.fits() ? 0 : 1,
                   QStringLiteral("%1 of %2").arg(format::bytes(p.peak_bytes()), format::bytes(report.memory_bytes())));
    fits.role = p.fits() ? QStringLiteral("ok") : QStringLiteral("warn");
    const double samples = static_cast<double>(std::max<std::int64_t>(1, p.batch()));
    TableCell peak = bytes(p.peak_bytes());
    if (p.dynamic() > 0)
      peak.tip += QStringLiteral("\nand what %1 instructions take whose extents only a run tells").arg(p.dynamic());
    row.cells = {{format::count(p.extent()), QVariant::fromValue<qint64>(p.extent())},
                 recompute(p.recompute()),
                 peak,
                 bytes(p.arena_bytes()),
                 bytes(p.state_bytes()),
                 fits,
                 time(p.predicted_ns()),
                 time(p.predicted_ns() / samples),
                 {format::count(p.repeated()), QVariant::fromValue<qint64>(p.repeated())}};
    out.push_back(std::move(row));
  }
  return out;
}

QString summary(const snapshot::CapacityReport& report) {
  const QString memory = format::bytes(report.memory_bytes());
  if (report.dimension().empty()) {
    if (report.points_size() == 0) return {};
    const auto& first = report.points(0);
    return QStringLiteral("The inputs have no dimension that can vary. As it is the step needs %1 of %2")
        .arg(format::bytes(first.peak_bytes()), memory);
  }
  const QString name = format::visible(report.dimension());
  QString text = report.largest() > 0
                     ? QStringLiteral("%1 up to %2 fits into %3").arg(name, format::count(report.largest()), memory)
                     : QStringLiteral("No %1 that was planned fits into %2").arg(name, memory);
  if (report.largest_with_recompute() > 0)
    text += QStringLiteral(", with recompute up to %1").arg(format::count(report.largest_with_recompute()));
  if (!report.ended().empty()) text += QStringLiteral(". No plan for %1").arg(format::visible(report.ended()));
  return text;
}

}  // namespace stepscope::capacity
