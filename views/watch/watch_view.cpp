// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/watch/watch_view.h"

#include <QMenu>

#include "views/common/format.h"
#include "views/common/names.h"

namespace stepscope {

WatchView::WatchView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("watch"), QStringLiteral("Watch"),
                 {{QStringLiteral("Value"), QStringLiteral("Name of the value"), false, 10},
                  {QStringLiteral("Min"), QStringLiteral("Smallest finite element"), true, 6},
                  {QStringLiteral("Max"), QStringLiteral("Largest finite element"), true, 6},
                  {QStringLiteral("Mean"), QStringLiteral("Mean over finite elements"), true, 6},
                  {QStringLiteral("Std"), QStringLiteral("Population standard deviation over finite elements"), true, 6},
                  {QStringLiteral("NaN"), QStringLiteral("Elements that are not a number"), true, 4},
                  {QStringLiteral("Inf"), QStringLiteral("Infinite elements"), true, 4},
                  {QStringLiteral("Step"),
                   QStringLiteral("Micro step that the numbers are of; dimmed when it is not the present one"), true, 4}},
                 parent) {
  const auto title = [this] {
    const auto n = store().watched().size();
    setTitle(n == 0 ? QStringLiteral("Watch") : QStringLiteral("Watch %1").arg(n));
    refillLater();
  };
  connect(&store(), &SnapshotStore::watchedChanged, this, title);
  connect(&store(), &SnapshotStore::positionChanged, this, &WatchView::refillLater);
  connect(&store(), &SnapshotStore::tensorArrived, this, &WatchView::refillLater);
  title();
}

QString WatchView::emptyText() const {
  return store().watched().empty()
             ? QStringLiteral("Nothing is watched.\nSelect a tensor and press Watch: its statistics come with every stop.")
             : QString();
}

void WatchView::refill() {
  std::vector<TableRow> rows;
  for (const int value : store().watched()) {
    TableRow row;
    row.target = Selection::ofValue(value);
    row.key = value;
    const QString name = store().graph() ? names::value(*store().graph(), value) : QStringLiteral("value %1").arg(value);
    row.cells.push_back({name, name, name});
    if (const auto* s = store().statistics(value)) {
      const std::int64_t step = store().statisticsStep(value);
      const QString role = step == store().presentStep() ? QString() : QStringLiteral("faint");
      for (const double x : {s->min(), s->max(), s->mean(), s->std()})
        row.cells.push_back({format::number(x, 4), x, format::numberExact(x)});
      for (auto cell = row.cells.begin() + 1; cell != row.cells.end(); ++cell) cell->role = role;
      for (const auto n : {s->nan(), s->inf()}) {
        TableCell cell(format::count(n), QVariant::fromValue<qint64>(n));
        cell.role = n > 0 ? QStringLiteral("error") : QStringLiteral("faint");
        row.cells.push_back(cell);
      }
      TableCell of(format::count(step), QVariant::fromValue<qint64>(step));
      of.role = role;
      row.cells.push_back(of);
    }
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

void WatchView::fillMenu(QMenu& menu, int row) {
  menu.addAction(QStringLiteral("Stop watching"), this,
                 [this, value = static_cast<int>(model().row(row).key)] { emit wishes().watch(value, false); });
  menu.addSeparator();
}

}  // namespace stepscope
