// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/runs/runs_view.h"

#include <QDateTime>
#include <QLocale>

#include "views/common/format.h"

namespace stepscope {

RunsView::RunsView(const ViewContext& context, QWidget* parent)
    : TablePanel(context, QStringLiteral("runs"), tr("Runs"),
                 {{tr("Run"), tr("Number and name of the run"), false, 9},
                  {tr("Started"), tr("Local time"), false, 8},
                  {tr("Steps"), tr("Recorded micro steps"), true, 5},
                  {tr("Per step"), tr("Time of all recorded steps divided by their number"), true, 6},
                  {tr("Loss"), tr("First and last recorded loss"), true, 9},
                  {tr("State"), tr("running, finished, failed, cancelled or interrupted"), false, 7}},
                 parent) {
  connect(&store().project(), &ProjectFacts::runsChanged, this, &RunsView::refillLater);
  connect(&store().project(), &ProjectFacts::projectChanged, this, &RunsView::refillLater);
}

QString RunsView::emptyText() const {
  return store().project().runs().empty() ? tr("No runs yet.\nEvery build starts one; a recorded project (.stepscope) brings its own.") : QString();
}

void RunsView::refill() {
  std::vector<TableRow> rows;
  for (const RunEntry& run : store().project().runs()) {
    TableRow row;
    row.key = run.id;
    const QDateTime started = QDateTime::fromMSecsSinceEpoch(run.startedAt / 1'000'000);
    TableCell state(format::visible(run.status));
    state.role = run.status == u"failed" || run.status == u"interrupted" ? QStringLiteral("error") : QStringLiteral("muted");
    const std::int64_t each = run.steps > 0 ? run.totalNs / run.steps : -1;
    row.cells = {{QStringLiteral("%1  %2").arg(run.id).arg(format::visible(run.name)), QVariant::fromValue<qint64>(run.id)},
                 {QLocale().toString(started, QStringLiteral("d MMM hh:mm")), QVariant::fromValue<qint64>(run.startedAt), started.toString(Qt::ISODateWithMs)},
                 {format::count(run.steps), QVariant::fromValue<qint64>(run.steps)},
                 {run.steps > 0 ? format::time(each) : QString(), QVariant::fromValue<qint64>(each)},
                 {run.hasLoss ? format::number(run.firstLoss, 4) + QStringLiteral(" → ") + format::number(run.lastLoss, 4) : QString(), run.lastLoss},
                 state};
    rows.push_back(std::move(row));
  }
  setRows(std::move(rows));
}

void RunsView::activated(int row) { emit wishes().openRun(model().row(row).key); }

}  // namespace stepscope
