// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/ranks/rank_rows.h"

#include <algorithm>
#include <cmath>

#include "views/common/format.h"

namespace stepscope::ranks {
namespace {

constexpr std::size_t kCameLast = 6;  // column

TableColumn number(const char* title, const char* tip) {
  return {QString::fromUtf8(title), QString::fromUtf8(tip), true, 6};
}

TableCell timeCell(double ns, double largest = 0) {
  const auto whole = static_cast<std::int64_t>(std::llround(ns));
  TableCell cell(format::time(whole), QVariant::fromValue<qint64>(whole), format::timeExact(whole));
  if (largest > 0) cell.share = std::clamp(ns / largest, 0.0, 1.0);
  return cell;
}

TableCell bytesCell(double bytes) {
  const auto whole = static_cast<std::int64_t>(std::llround(bytes));
  return {format::bytes(whole), QVariant::fromValue<qint64>(whole), format::bytesExact(whole)};
}

// A measured size that differs from the planned one is said so.
TableCell measuredCell(std::int64_t measured, std::int64_t planned) {
  TableCell cell = bytesCell(static_cast<double>(measured));
  cell.tip += QStringLiteral("\n%1 as planned").arg(format::bytesDifference(measured - planned));
  if (measured > planned) cell.role = QStringLiteral("warn");
  return cell;
}

double computes(const RankTotals& rank) { return rank.ns - rank.exposedNs; }

}  // namespace

std::vector<TableColumn> columns() {
  return {{QStringLiteral("Rank"), QStringLiteral("Process of the run; rank 0 records"), false, 5},
          number("Step", "Mean time of a step"),
          number("Computes", "Of it, the rest: what it does itself"),
          number("Exposed", "Of it, in collectives while the rank did nothing else"),
          number("Waits", "In collectives, until all ranks had come"),
          number("Sends", "In collectives, then, until the results were there"),
          number("Came last", "Steps in which it waited least: the others waited for it"),
          number("Planned peak", "Bytes of state, constants, batch and arena as planned"),
          number("Measured peak", "The same as measured"),
          number("State", "Bytes of parameters, statistics and optimizer state that it keeps"),
          number("Sent", "Bytes to other ranks in a step"),
          number("Planned to send", "Bytes that the collectives of its plan send in a step")};
}

std::vector<TableRow> rows(const RankTimes::Table& table) {
  double longest = 0, longestWait = 0;
  std::int64_t most = 0;
  for (const RankTotals& r : table.ranks) {
    longest = std::max(longest, computes(r));
    longestWait = std::max(longestWait, r.waitNs);
    most = std::max(most, r.last);
  }
  std::vector<TableRow> rows;
  for (const RankTotals& r : table.ranks) {
    TableRow& row = rows.emplace_back();
    row.cells = {{QStringLiteral("rank %1").arg(r.rank), r.rank},
                 timeCell(r.ns),
                 timeCell(computes(r), longest),
                 timeCell(r.exposedNs),
                 timeCell(r.waitNs, longestWait),
                 timeCell(r.moveNs),
                 {format::count(r.last), QVariant::fromValue<qint64>(r.last),
                  QStringLiteral("%1 of %2 steps").arg(format::count(r.last), format::count(r.steps))},
                 bytesCell(static_cast<double>(r.plannedBytes)),
                 measuredCell(r.peakBytes, r.plannedBytes),
                 bytesCell(static_cast<double>(r.stateBytes)),
                 bytesCell(r.sentBytes),
                 bytesCell(r.plannedSentBytes)};
    // Of equal ranks each comes last in its share of the steps.
    if (table.ranks.size() > 1 && r.last == most && 2 * r.last > r.steps) row.cells[kCameLast].role = QStringLiteral("warn");
  }
  return rows;
}

std::vector<TableColumn> collectiveColumns() {
  return {
      {QStringLiteral("Collective"), QStringLiteral("Node of the plan, or what ranks tell each other besides"), false, 14},
      number("Mean wait", "Over the ranks, until all had come"),
      number("Worst wait", "Of the rank that waited longest, mean over the steps"),
      number("Sends", "Until the results were there"),
      number("Exposed", "Of both, while a rank did nothing else"),
      number("Sent", "Bytes of a rank"),
      {QStringLiteral("Waited for"), QStringLiteral("The rank that came last in most steps"), false, 6}};
}

std::vector<TableRow> collectiveRows(const RankTimes::Table& table, const PlanPtr& plan) {
  double longest = 0;
  for (const CollectiveTotals& c : table.collectives) longest = std::max(longest, c.worstWaitNs);
  std::vector<TableRow> rows;
  for (const CollectiveTotals& c : table.collectives) {
    TableRow& row = rows.emplace_back();
    row.cells = {format::visible(c.node),
                 timeCell(c.meanWaitNs),
                 timeCell(c.worstWaitNs, longest),
                 timeCell(c.moveNs),
                 timeCell(c.exposedNs),
                 bytesCell(c.sentBytes),
                 {c.last < 0 ? QStringLiteral("–") : QStringLiteral("rank %1").arg(c.last), c.last}};
    if (!plan) continue;
    const std::string end = " '" + c.node.toStdString() + '\'';
    for (const auto& in : plan->plan().instructions())
      if (in.label().ends_with(end)) {
        row.target = Selection::ofInstruction(in.index());
        break;
      }
  }
  return rows;
}

QString summary(const RankTimes::Table& table) {
  if (table.ranks.empty()) return {};
  const auto [fast, slow] = std::minmax_element(table.ranks.begin(), table.ranks.end(),
                                                [](const auto& a, const auto& b) { return computes(a) < computes(b); });
  double exposed = 0, all = 0, busy = 0;
  for (const RankTotals& r : table.ranks) {
    exposed += r.exposedNs;
    busy += r.waitNs + r.moveNs;
    all += r.ns;
  }
  const auto percent = [](double part, double whole) {
    return whole > 0 ? format::percent(part, whole) : QStringLiteral("0 %");
  };
  return QStringLiteral(
             "skew %1: rank %2 computes longest, rank %3 shortest · %4 of a step is communication alone · %5 of "
             "communication is beside computation")
      .arg(percent(computes(*slow) - computes(*fast), computes(*slow)))
      .arg(slow->rank)
      .arg(fast->rank)
      .arg(percent(exposed, all), percent(std::max(0.0, busy - exposed), busy));
}

}  // namespace stepscope::ranks
