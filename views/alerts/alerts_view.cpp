// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/alerts/alerts_view.h"

#include <QItemSelectionModel>
#include <QMenu>

#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/script_drives.h"

namespace stepscope {

AlertsView::AlertsView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("alerts"), QStringLiteral("Alerts"),
          {{QStringLiteral("Severity"),
            QStringLiteral("Error: results are wrong or missing. Warning: likely not what was meant. Info: worth knowing."),
            false, 6},
           {QStringLiteral("Code"), QStringLiteral("Stable name of the kind of alert, usable in filters and SQL"), false,
            11},
           {QStringLiteral("Step"), QStringLiteral("Micro step in which it was found; build: it is of no step"), true, 5},
           {QStringLiteral("Where"), QStringLiteral("Node, value or instruction it was first seen at"), false, 22},
           {QStringLiteral("Message"), QStringLiteral("What was found, and what to do"), false, 30}},
          parent),
      go_(new QToolButton(this)) {
  go_->setText(QStringLiteral("Go to its step"));
  go_->setObjectName(QStringLiteral("alert_go"));
  go_->setToolTip(QStringLiteral(
      "Goes back to the step of the chosen alert and runs it up to the instruction; also double click or Enter"));
  go_->hide();
  connect(go_, &QToolButton::clicked, this, [this] { activated(chosenRow()); });
  connect(table()->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &AlertsView::updateGo);
  connect(&store(), &SnapshotStore::positionChanged, this, &AlertsView::updateGo);
  connect(&store(), &SnapshotStore::alertsChanged, this, &AlertsView::refillLater);
  connect(&store(), &SnapshotStore::graphChanged, this, &AlertsView::refillLater);
  connect(&store(), &SnapshotStore::planChanged, this, &AlertsView::refillLater);
}

QString AlertsView::emptyText() const {
  if (!store().alerts().empty()) return {};
  return store().plan() ? QStringLiteral("No alerts.\nNaN, new infinities, non-determinism and lost records appear here.")
                        : QStringLiteral("No model is open.\nOpen one (Ctrl+O): its alerts appear here.");
}

void AlertsView::refill() {
  std::vector<TableRow> rows;
  const GraphPtr& graph = store().graph();
  for (const auto& alert : store().alerts()) {
    TableRow row;
    row.key = static_cast<qint64>(rows.size());
    row.target.node = alert.node();
    row.target.value = alert.value();
    row.target.instruction = alert.instruction();
    const int severity = alert.severity();
    const QString word = severity == snapshot::Alert::ERROR     ? QStringLiteral("error")
                         : severity == snapshot::Alert::WARNING ? QStringLiteral("warning")
                                                                : QStringLiteral("info");
    TableCell first(word, -severity);
    first.role = severity == snapshot::Alert::ERROR     ? QStringLiteral("error")
                 : severity == snapshot::Alert::WARNING ? QStringLiteral("warn")
                                                        : QStringLiteral("muted");
    const QString message = format::visible(alert.message());
    QString where = QStringLiteral("build");
    if (graph && graph->node(alert.node())) {
      where = names::node(*graph, alert.node());
    } else if (graph && graph->value(alert.value())) {
      where = names::value(*graph, alert.value());
    } else if (alert.instruction() >= 0) {
      where = QStringLiteral("instruction %1").arg(alert.instruction());
    }
    row.cells = {first,
                 format::visible(alert.code()),
                 {alert.step() < 0 ? QStringLiteral("build") : format::count(alert.step()),
                  QVariant::fromValue<qint64>(alert.step())},
                 where,
                 {message, message, message}};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
  updateGo();
}

const snapshot::Alert* AlertsView::alertOf(int row) const {
  const auto& all = store().alerts();
  if (row < 0 || row >= model().rowCount()) return nullptr;
  const qint64 at = model().row(row).key;
  return at >= 0 && at < static_cast<qint64>(all.size()) ? &all[static_cast<std::size_t>(at)] : nullptr;
}

bool AlertsView::canGo(int row) const {
  const snapshot::Alert* alert = alertOf(row);
  return alert && !store().readOnly() && !scriptDrives(store()) && store().plan() && alert->step() >= 0 &&
         alert->step() <= store().position().step() &&
         (alert->instruction() >= 0 || alert->step() < store().position().step());
}

void AlertsView::updateGo() { allow(store(), go_, canGo(chosenRow())); }

void AlertsView::activated(int row) {
  if (canGo(row)) emit wishes().goToPlace(alertOf(row)->step(), alertOf(row)->instruction());
}

void AlertsView::fillMenu(QMenu& menu, int row) {
  QAction* go = menu.addAction(go_->text(), this, [this, row] { activated(row); });
  allow(store(), go, canGo(row));
  menu.addSeparator();
}

}  // namespace stepscope
