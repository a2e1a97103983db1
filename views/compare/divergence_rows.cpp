// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/divergence_rows.h"

#include <QObject>
#include <cmath>
#include <unordered_map>

#include "views/common/comparison_cells.h"
#include "views/common/format.h"

namespace stepscope {

std::vector<TableColumn> divergenceColumns() {
  return {{QStringLiteral("Step"), QStringLiteral("Micro step; steps are matched by their number"), true, 4},
          {QStringLiteral("Phase"),
           QStringLiteral("Phase that makes the number: within a step forward comes first, then backward"), false, 7},
          {QStringLiteral("Quantity"),
           QStringLiteral(
               "loss, gradient norm before clipping, or the first statistic of a watched value that parts: elements, NaN, "
               "Inf, norm, mean, std, min, max"),
           false, 7},
          {QStringLiteral("Value"), QStringLiteral("Name of the value; click selects it in the open model"), false, 14},
          {QStringLiteral("A"), QStringLiteral("Number of run A"), true, 9},
          {QStringLiteral("B"), QStringLiteral("Number of run B"), true, 9},
          {QStringLiteral("B − A"), QStringLiteral("Difference"), true, 8},
          {QStringLiteral("Relative"), QStringLiteral("|A − B| divided by |B|: what rtol limits"), true, 7}};
}

std::vector<TableRow> divergenceRows(const RunComparison& c, const GraphSnapshot* graph) {
  std::unordered_map<std::string, int> ids;
  if (graph && !c.divergences.empty()) {
    for (const auto& v : graph->graph().values()) ids.try_emplace(v.name(), v.id());
  }
  const auto target = [&](const Divergence& d) {
    if (!graph) return Selection();
    if (d.quantity == u"loss" && d.value.isEmpty())
      return graph->value(graph->graph().loss()) ? Selection::ofValue(graph->graph().loss()) : Selection();
    const auto found = ids.find(d.value.isEmpty() ? "stepscope.gradient_norm" : d.value.toStdString());
    return found == ids.end() ? Selection() : Selection::ofValue(found->second);
  };
  std::vector<TableRow> rows;
  for (const Divergence& d : c.divergences) {
    TableRow row;
    TableCell difference, relative;
    if (d.a && d.b) {
      const double by = *d.b - *d.a;
      difference = {(by > 0 ? QStringLiteral("+") : QString()) + format::number(by, 4), comparison::sortKey(std::abs(by)),
                    format::numberExact(by)};
      if (*d.b != 0)
        relative = {format::number(std::abs(by / *d.b), 3), comparison::sortKey(std::abs(by / *d.b)),
                    format::numberExact(std::abs(by / *d.b))};
    }
    TableCell phase(format::visible(d.phase));
    phase.role = QStringLiteral("muted");
    row.cells = {{format::count(d.step), QVariant::fromValue<qint64>(d.step)},
                 phase,
                 comparison::plain(d.quantity),
                 comparison::plain(d.value),
                 comparison::number(d.a),
                 comparison::number(d.b),
                 difference,
                 relative};
    row.target = target(d);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepscope
