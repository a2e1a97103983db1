// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/time_rows.h"

#include <QObject>
#include <map>

#include "views/common/comparison_cells.h"
#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {
namespace {

TableCell measured(const TimeFigures& t, std::int64_t ns) {
  return t.n > 0 ? comparison::time(static_cast<double>(ns)) : comparison::absent();
}

TableCell notAlike() {
  TableCell cell = comparison::absent();
  cell.tip = QStringLiteral("One run was measured in warm-up alone, the other was not");
  return cell;
}

std::optional<double> asNumber(std::optional<std::int64_t> n) {
  return n ? std::optional(static_cast<double>(*n)) : std::nullopt;
}

}  // namespace

std::vector<TableColumn> timeColumns(Times which) {
  if (which == Times::kMemory) {
    return {{QStringLiteral("Memory"),
             QStringLiteral(
                 "planned: as the plan has it, persistent memory included · measured peak: touched pages · arena: planned "
                 "for intermediate values · lower bound: largest sum of live bytes in this order · persistent: parameters, "
                 "optimizer state, constants, batch"),
             false, 12},
            {QStringLiteral("A"), QStringLiteral("Run A"), true, 8},
            {QStringLiteral("B"), QStringLiteral("Run B"), true, 8},
            {QStringLiteral("B − A"), QStringLiteral("Difference in bytes"), true, 8},
            {QStringLiteral("Change"), QStringLiteral("Difference in percent of A"), true, 7}};
  }
  const QString of = which == Times::kOperators ? QStringLiteral("one execution")
                     : which == Times::kBuild   ? QStringLiteral("the newest build")
                                                : QStringLiteral("one step");
  const QString sum = which == Times::kBuild       ? QStringLiteral("Wall-clock time of the newest build")
                      : which == Times::kOperators ? QStringLiteral("Medians of its instructions together, without warm-up")
                                                   : QStringLiteral("Median of the steps without warm-up");
  return {{which == Times::kOperators ? QStringLiteral("Operator") : QStringLiteral("Phase"),
           which == Times::kOperators
               ? QStringLiteral("Operator and phase; click selects the first such instruction of the open model")
               : QStringLiteral("Phase"),
           false, 17},
          {which == Times::kBuild ? QStringLiteral("A") : QStringLiteral("A per step"), sum, true, 7},
          {which == Times::kBuild ? QStringLiteral("B") : QStringLiteral("B per step"), sum, true, 7},
          {QStringLiteral("B − A"), QStringLiteral("Difference; below zero B is faster"), true, 7},
          {QStringLiteral("Change"), QStringLiteral("Difference in percent of A"), true, 6},
          {QStringLiteral("A n"), QStringLiteral("Measurements of %1 in A").arg(of), true, 4},
          {QStringLiteral("A median"), QStringLiteral("Half of the measurements of %1 were faster").arg(of), true, 7},
          {QStringLiteral("A p95"), QStringLiteral("95 of 100 measurements of %1 were faster").arg(of), true, 7},
          {QStringLiteral("B n"), QStringLiteral("Measurements of %1 in B").arg(of), true, 4},
          {QStringLiteral("B median"), QStringLiteral("Half of the measurements of %1 were faster").arg(of), true, 7},
          {QStringLiteral("B p95"), QStringLiteral("95 of 100 measurements of %1 were faster").arg(of), true, 7},
          {which == Times::kOperators ? QStringLiteral("Instructions") : QStringLiteral("Items"),
           which == Times::kOperators ? QStringLiteral("Instructions of the plan, A → B")
                                      : QStringLiteral("Items worked on or steps measured, A → B"),
           true, 7}};
}

std::vector<TableRow> timeRows(const RunComparison& c, Times which, const PlanSnapshot* plan, bool comparable, bool alike) {
  std::vector<TableRow> rows;
  if (which == Times::kMemory) {
    for (const ComparedBytes& m : c.memory) {
      TableRow row;
      row.cells = {comparison::plain(m.name), comparison::bytes(m.a), comparison::bytes(m.b),
                   comparison::bytesDifference(m.a, m.b), comparison::change(asNumber(m.a), asNumber(m.b))};
      rows.push_back(std::move(row));
    }
    return rows;
  }
  std::map<std::pair<QString, QString>, int> first;
  static const std::map<int, QString> kPhases{{snapshot::FORWARD, QStringLiteral("forward")},
                                              {snapshot::BACKWARD, QStringLiteral("backward")},
                                              {snapshot::RECOMPUTE, QStringLiteral("recompute")},
                                              {snapshot::OPTIMIZER, QStringLiteral("optimizer")}};
  for (int i = 0; plan && which == Times::kOperators && i < plan->size(); ++i) {
    const auto* in = plan->instruction(i);
    const auto phase = kPhases.find(in->phase());
    if (phase != kPhases.end()) first.try_emplace({names::op(*in), phase->second}, i);
  }
  const auto& list = which == Times::kOperators ? c.ops : which == Times::kStepPhases ? c.stepPhases : c.buildPhases;
  const bool judged = which != Times::kBuild && comparable;  // a build was measured once in each run
  const bool apart = which != Times::kBuild && !alike;
  for (const ComparedTime& t : list) {
    TableRow row;
    const QString name =
        format::visible(t.name) + (t.phase.isEmpty() ? QString() : QStringLiteral("  ") + format::visible(t.phase));
    row.cells = {{name},
                 comparison::time(t.a),
                 comparison::time(t.b),
                 apart ? notAlike() : comparison::timeDifference(t.a, t.b, judged),
                 apart ? notAlike() : comparison::change(t.a, t.b, judged)};
    for (const TimeFigures& f : {t.timeA, t.timeB}) {
      row.cells.push_back(f.n > 0 ? TableCell(format::count(f.n), QVariant::fromValue<qint64>(f.n)) : comparison::absent());
      for (const std::int64_t ns : {f.median, f.p95}) {
        row.cells.push_back(measured(f, ns));
        if (f.n > 0)
          row.cells.back().tip += QStringLiteral("\nmin %1, max %2").arg(format::time(f.min), format::time(f.max));
      }
    }
    row.cells.push_back({t.countA == t.countB ? format::count(t.countA)
                                              : format::count(t.countA) + QStringLiteral(" → ") + format::count(t.countB),
                         QVariant::fromValue<qint64>(t.countB)});
    if (const auto found = first.find({t.name, t.phase}); found != first.end())
      row.target = Selection::ofInstruction(found->second);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepscope
