// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/watch/watch_view.h"

#include <QMenu>

#include "views/common/branches.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/running.h"

namespace stepscope {

WatchView::WatchView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("watch"), QStringLiteral("Watch"),
                 {{QStringLiteral("Value"), QStringLiteral("Name of the value"), false, 9},
                  {QStringLiteral("Step"),
                   QStringLiteral("Micro step that the numbers are of: the newest that computed the value. They were taken "
                                  "then, whatever its memory holds now. Where it is not the present step they are dimmed, "
                                  "and it says why there are none of this one"),
                   false, 8},
                  {QStringLiteral("Min"), QStringLiteral("Smallest finite element"), true, 6},
                  {QStringLiteral("Max"), QStringLiteral("Largest finite element"), true, 6},
                  {QStringLiteral("Mean"), QStringLiteral("Mean over finite elements"), true, 6},
                  {QStringLiteral("Std"), QStringLiteral("Population standard deviation over finite elements"), true, 6},
                  {QStringLiteral("NaN"), QStringLiteral("Elements that are not a number"), true, 4},
                  {QStringLiteral("Inf"), QStringLiteral("Infinite elements"), true, 4}},
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

namespace {

// Why there are no numbers of the present step; empty where there are.
QString whyNot(const SnapshotStore& store, int value) {
  if (store.statisticsStep(value) >= 0 && store.statisticsStep(value) == store.presentStep()) return {};
  const int producer = store.plan() ? store.plan()->producerOfValue(value) : -1;
  if (Running::of(store).on()) return QStringLiteral("running");
  if (!store.position().in_step() && store.presentStep() < 0) return QStringLiteral("no step has run");
  if (store.position().in_step() && producer >= store.position().instruction()) return QStringLiteral("not computed yet");
  const Taken taken = takenIn(store, producer);
  if (taken == Taken::kBranchLeftOut) return QStringLiteral("branch not taken");
  if (taken == Taken::kUpdateLeftOut) return QStringLiteral("no update in this step");
  return QStringLiteral("watched since then: next step");
}

}  // namespace

QString WatchView::emptyText() const {
  return store().watched().empty() ? QStringLiteral(
                                         "Nothing is watched.\nSelect a tensor and press Watch: its statistics are taken "
                                         "in every step, when it is computed.")
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
    const auto* s = store().statistics(value);
    const QString why = whyNot(store(), value);
    QStringList of;
    if (s) of << format::count(store().statisticsStep(value));
    if (!why.isEmpty()) of << why;
    TableCell step(of.join(QStringLiteral(", ")), QVariant::fromValue<qint64>(store().statisticsStep(value)));
    const QString role = why.isEmpty() ? QString() : QStringLiteral("faint");
    step.role = why.isEmpty() ? QString() : QStringLiteral("muted");
    row.cells.push_back(step);
    if (s) {
      for (const double x : {s->min(), s->max(), s->mean(), s->std()}) {
        row.cells.push_back({format::number(x, 4), x, format::numberExact(x)});
        row.cells.back().role = role;
      }
      for (const auto n : {s->nan(), s->inf()}) {
        TableCell cell(format::count(n), QVariant::fromValue<qint64>(n));
        cell.role = n > 0 ? QStringLiteral("error") : QStringLiteral("faint");
        row.cells.push_back(cell);
      }
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
