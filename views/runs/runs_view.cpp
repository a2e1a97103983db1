// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/runs/runs_view.h"

#include <QDateTime>
#include <QHBoxLayout>
#include <QLocale>
#include <QMenu>
#include <QMessageBox>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/project_reads.h"
#include "views/common/reading_veil.h"
#include "views/common/run_times.h"

namespace stepscope {
namespace {
constexpr int kDiffers = 2;  // column
}

RunsView::RunsView(const ViewContext& context, QWidget* parent)
    : TablePanel(
          context, QStringLiteral("runs"), QStringLiteral("Runs"),
          {{QString(), QStringLiteral("A and B: the two runs that stand in Compare"), false, 2},
           {QStringLiteral("Run"), QStringLiteral("Number and name of the run; only the number where all have one name"),
            false, 5},
           {QStringLiteral("Differs in"),
            QStringLiteral("Options in which the runs differ, with the value of this one; of more than two runs without "
                           "what it has not"),
            false, 9},
           {QStringLiteral("Loss"), QStringLiteral("First and last recorded loss"), true, 9},
           {QStringLiteral("Started"), QStringLiteral("Local time"), false, 9},
           {QStringLiteral("Steps"), QStringLiteral("Recorded micro steps, without those that a rewind took back"), true, 4},
           {QStringLiteral("n"),
            QStringLiteral("Steps that the times beside count: all that ran, those that a rewind took back too, but for "
                           "warm-up, the first step of each plan, and those that somebody stopped in"),
            true, 4},
           {QStringLiteral("Median"), QStringLiteral("Half of those steps were faster, wall-clock time"), true, 6},
           {QStringLiteral("p95"), QStringLiteral("95 of 100 steps were faster"), true, 6},
           {QStringLiteral("Min"), QStringLiteral("Fastest step"), true, 6},
           {QStringLiteral("Max"), QStringLiteral("Slowest step"), true, 6},
           {QStringLiteral("Ran"),
            QStringLiteral(
                "How those steps ran: at full speed; recorded, with the begin and end of every instruction; watched, "
                "recorded and every value looked at for NaN and Inf; walked, instruction by instruction. Busy: something "
                "else ran on the machine. Times of different kinds do not "
                "compare"),
            false, 6},
           {QStringLiteral("State"), QStringLiteral("running, finished, failed, cancelled or interrupted"), false, 7}},
          parent),
      controls_(new QWidget(this)),
      cancel_(new QPushButton(QStringLiteral("Cancel"))) {
  auto* line = new QHBoxLayout(controls_);
  line->setContentsMargins(0, 0, 0, 0);
  line->addWidget(cancel_);
  controls_->hide();
  cancel_->setObjectName(QStringLiteral("runs_cancel"));
  cancel_->setToolTip(QStringLiteral("Ends reading the list of runs; it stays as it was before  (Esc)"));
  connect(cancel_, &QPushButton::clicked, this, [this] { emit wishes().command(QStringLiteral("cancel_reads")); });
  const ProjectReads& reads = ProjectReads::of(store().project());
  new ReadingVeil(table(), reads, ProjectReads::What::kRuns, [this] {
    return store().project().runs().empty() ? QString() : QStringLiteral("Reading the runs again …");
  });
  connect(&reads, &ProjectReads::changed, this, &RunsView::followReading);
  followReading();
  connect(&store().project(), &ProjectFacts::runsChanged, this, &RunsView::refillLater);
  connect(&RunTimes::of(store().project()), &RunTimes::changed, this, &RunsView::refillLater);
  connect(&store().project(), &ProjectFacts::projectChanged, this, &RunsView::refillLater);
  connect(&store().project(), &ProjectFacts::comparisonChanged, this, &RunsView::refillLater);
}

QString RunsView::headerText() const {
  const ProjectReads& reads = ProjectReads::of(store().project());
  if (reads.shown(ProjectReads::What::kRuns)) return QStringLiteral("reading …");
  if (reads.leftOff(ProjectReads::What::kRuns)) return QStringLiteral("as before: cancelled");
  return TablePanel::headerText();
}

void RunsView::followReading() {
  cancel_->setVisible(ProjectReads::of(store().project()).shown(ProjectReads::What::kRuns));
  emit headerChanged();
  emit emptyChanged();
}

QString RunsView::emptyText() const {
  if (store().project().runs().empty() && ProjectReads::of(store().project()).shown(ProjectReads::What::kRuns))
    return QStringLiteral("Reading the runs of the project …");

  return store().project().runs().empty()
             ? QStringLiteral("No runs yet.\nEvery build starts one; a recorded project (.stepscope) brings its own.")
             : QString();
}

void RunsView::refill() {
  const auto& runs = store().project().runs();
  const bool oneName =
      std::all_of(runs.begin(), runs.end(), [&runs](const RunEntry& run) { return run.name == runs.front().name; });
  std::vector<TableRow> rows;
  const std::vector<QString> differ = differences(runs);
  for (const RunEntry& run : runs) {
    TableRow row;
    const QString own = format::visible(differ[rows.size()]);
    row.key = run.id;
    const QDateTime started = QDateTime::fromMSecsSinceEpoch(run.startedAt / 1'000'000);
    const CompareRequest& pair = store().project().compareRequest();
    const bool a = pair.a == run.id, b = pair.b == run.id && pair.otherProject.isEmpty();
    const QString letter = a && b ? QStringLiteral("AB") : a ? QStringLiteral("A") : b ? QStringLiteral("B") : QString();
    TableCell state(format::visible(run.status));
    state.role = run.status == u"failed" || run.status == u"interrupted" ? QStringLiteral("error") : QStringLiteral("muted");
    const RunStepTimes step = RunTimes::of(store().project()).step(run.id);
    const auto time = [&step](std::int64_t ns) {
      return step.n > 0 ? TableCell(format::time(ns), QVariant::fromValue<qint64>(ns), format::timeExact(ns))
                        : TableCell(QString(), QVariant::fromValue<qint64>(-1));
    };
    TableCell ran(step.busy ? QStringLiteral("%1, busy").arg(step.speed) : step.speed);
    ran.role = step.busy ? QStringLiteral("warn") : QStringLiteral("muted");
    if (step.measured)
      ran.tip = QStringLiteral("%1 processors, waited for %2 % of what was asked for")
                    .arg(step.processors, 0, 'f', 1)
                    .arg(100 * step.waitShare, 0, 'f', 1);
    // A name that all runs have tells none from another.
    const QString name = QStringLiteral("%1  %2").arg(run.id).arg(format::visible(run.name));
    TableCell mark(letter);
    mark.role = QStringLiteral("accent");
    row.cells = {mark,
                 {oneName ? QString::number(run.id) : name, QVariant::fromValue<qint64>(run.id), name},
                 {own, own, own},
                 {run.hasLoss ? format::number(run.firstLoss, 4) + QStringLiteral(" → ") + format::number(run.lastLoss, 4)
                              : QString(),
                  run.lastLoss},
                 {QLocale().toString(started, QStringLiteral("d MMM hh:mm")), QVariant::fromValue<qint64>(run.startedAt),
                  started.toString(Qt::ISODateWithMs)},
                 {stepsText(run), QVariant::fromValue<qint64>(run.steps), otherStepsText(run)},
                 {step.n > 0 ? format::count(step.n) : QString(), QVariant::fromValue<qint64>(step.n)},
                 time(step.median),
                 time(step.p95),
                 time(step.min),
                 time(step.max),
                 ran,
                 state};
    rows.push_back(std::move(row));
  }
  table()->setColumnHidden(kDiffers, std::ranges::all_of(differ, &QString::isEmpty));
  setRows(std::move(rows));
}

void RunsView::compare(qint64 a, qint64 b) {
  CompareRequest request = store().project().compareRequest();
  if (a != 0) request.a = a;
  if (b != 0) {
    request.b = b;
    request.otherProject.clear();
  }
  emit wishes().compareRuns(request);
  emit wishes().command(QStringLiteral("compare_runs"));
}

// While a project is recorded its newest run is the one.
qint64 RunsView::recordedRun(const std::vector<RunEntry>& runs) {
  qint64 newest = 0;
  for (const RunEntry& run : runs) newest = std::max<qint64>(newest, run.id);
  return newest;
}

void RunsView::fillMenu(QMenu& menu, int row) {
  const QModelIndexList chosen = table()->selectionModel()->selectedRows();
  if (chosen.size() == 2) {
    qint64 first = chosen[0].data(RowTableModel::kKeyRole).toLongLong(),
           second = chosen[1].data(RowTableModel::kKeyRole).toLongLong();
    if (first > second) std::swap(first, second);
    menu.addAction(QStringLiteral("Compare run %1 with run %2").arg(first).arg(second), this,
                   [this, first, second] { compare(first, second); });
  }
  const qint64 run = model().row(row).key;
  menu.addAction(QStringLiteral("Compare: as A"), this, [this, run] { compare(run, 0); });
  menu.addAction(QStringLiteral("Compare: as B"), this, [this, run] { compare(0, run); });
  menu.addSeparator();
  QAction* begin = menu.addAction(QStringLiteral("New run from step 0"), this,
                                  [this] { emit wishes().command(QStringLiteral("new_run")); });
  begin->setObjectName(QStringLiteral("new_run"));
  begin->setEnabled(!store().readOnly() && store().plan());
  if (store().readOnly()) begin->setToolTip(QStringLiteral("This project is open to look at; nothing is recorded"));
  const QString& unwritable = store().project().whyNotWritable();
  QAction* name = menu.addAction(QStringLiteral("Name run %1…").arg(run), this, [this, run] { emit wishes().nameRun(run); });
  name->setObjectName(QStringLiteral("name_run"));
  name->setEnabled(unwritable.isEmpty());
  name->setToolTip(unwritable.isEmpty() ? QStringLiteral("The name it has in the list of runs and in reports") : unwritable);
  QAction* away = menu.addAction(QStringLiteral("Delete run %1…").arg(run), this, [this, run] { askToDelete(run); });
  away->setObjectName(QStringLiteral("run_delete"));
  const QString refusal = !unwritable.isEmpty() ? unwritable
                          : store().project().runs().size() < 2
                              ? QStringLiteral("The only run of the project: delete its file")
                          : !store().readOnly() && run == recordedRun(store().project().runs())
                              ? QStringLiteral("This run is being recorded; a new run from step 0 makes it an earlier one")
                              : QString();
  away->setEnabled(refusal.isEmpty());
  away->setToolTip(
      refusal.isEmpty()
          ? (store().readOnly()
                 ? QStringLiteral("Its steps, graphs and alerts go, and their space on the disk comes back")
                 : QStringLiteral("Its steps, graphs and alerts go; the run that is recorded takes their space"))
          : refusal);
}

void RunsView::askToDelete(qint64 run) {
  const auto& runs = store().project().runs();
  const auto it = std::find_if(runs.begin(), runs.end(), [run](const RunEntry& r) { return r.id == run; });
  if (it == runs.end()) return;
  auto* question = new QMessageBox(QMessageBox::Warning, QStringLiteral("Delete a run"),
                                   QStringLiteral("Delete run %1, %2, with its %3 steps? This cannot be taken back.")
                                       .arg(run)
                                       .arg(format::visible(it->name), format::count(it->steps)),
                                   QMessageBox::Cancel, this);
  question->setObjectName(QStringLiteral("run_delete_question"));
  question->setTextFormat(Qt::PlainText);
  question->setAttribute(Qt::WA_DeleteOnClose);
  QPushButton* yes = question->addButton(QStringLiteral("Delete"), QMessageBox::DestructiveRole);
  connect(yes, &QPushButton::clicked, this, [this, run] { emit wishes().deleteRun(run); });
  question->open();
}

void RunsView::activated(int row) { emit wishes().openRun(model().row(row).key); }

}  // namespace stepscope
