// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/alerts/alerts_view.h"

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

AlertsView::AlertsView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("alerts"), tr("Alerts"),
          {{tr("Severity"),
            tr("Error: results are wrong or missing. Warning: likely not what was meant. Info: worth knowing."), false, 6},
           {tr("Code"), tr("Stable name of the kind of alert, usable in filters and SQL"), false, 11},
           {tr("Step"), tr("Micro step in which it was found; before the first step: build"), true, 5},
           {tr("Where"), tr("Node, value or instruction it was first seen at"), false, 22},
           {tr("Message"), tr("What was found, and what to do"), false, 30}},
          parent) {
  connect(&store(), &SnapshotStore::alertsChanged, this, &AlertsView::refillLater);
  connect(&store(), &SnapshotStore::graphChanged, this, &AlertsView::refillLater);
  connect(&store(), &SnapshotStore::planChanged, this, &AlertsView::refillLater);
}

QString AlertsView::emptyText() const {
  if (!store().alerts().empty()) return {};
  return store().plan() ? tr("No alerts.\nNaN, new infinities, non-determinism and lost records appear here.")
                        : tr("No model is open.\nOpen one (Ctrl+O): its alerts appear here.");
}

void AlertsView::refill() {
  std::vector<TableRow> rows;
  const GraphPtr& graph = store().graph();
  for (const auto& alert : store().alerts()) {
    TableRow row;
    row.target.node = alert.node();
    row.target.value = alert.value();
    row.target.instruction = alert.instruction();
    const int severity = alert.severity();
    const QString word = severity == snapshot::Alert::ERROR     ? tr("error")
                         : severity == snapshot::Alert::WARNING ? tr("warning")
                                                                : tr("info");
    TableCell first(word, -severity);
    first.role = severity == snapshot::Alert::ERROR     ? QStringLiteral("error")
                 : severity == snapshot::Alert::WARNING ? QStringLiteral("warn")
                                                        : QStringLiteral("muted");
    const QString message = format::visible(alert.message());
    QString where = tr("build");
    if (graph && graph->node(alert.node())) {
      where = names::node(*graph, alert.node());
    } else if (graph && graph->value(alert.value())) {
      where = names::value(*graph, alert.value());
    } else if (alert.instruction() >= 0) {
      where = tr("instruction %1").arg(alert.instruction());
    }
    row.cells = {first,
                 format::visible(alert.code()),
                 {alert.step() < 0 ? tr("build") : format::count(alert.step()), QVariant::fromValue<qint64>(alert.step())},
                 where,
                 {message, message, message}};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

}  // namespace stepscope
