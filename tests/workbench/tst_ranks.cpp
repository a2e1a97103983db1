// SPDX-License-Identifier: GPL-3.0-or-later
// A run of two processes under mpirun, recorded into one project and opened in the window: every rank has its rows in the
// timeline, its peaks below the memory map and its line in the tables.
#include <QFileInfo>
#include <QProcess>
#include <QStandardPaths>
#include <QTest>
#include <algorithm>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/rank_times.h"
#include "views/common/row_table.h"
#include "views/common/tokens.h"
#include "views/memory/memory_view.h"
#include "views/ranks/rank_rows.h"
#include "views/timeline/exchange_words.h"
#include "views/timeline/timeline_view.h"

using namespace stepscope;

namespace {

using Kind = TimelineRow::Kind;

constexpr int kSteps = 5;

QString digits(const char* file) { return QStringLiteral(SOURCE_FOLDER "/app/samples/digits/") + QLatin1String(file); }

QStringList train(const QString& project) {
  return {QStringLiteral("train"),     digits("model.onnx"),
          QStringLiteral("--data"),    digits("batches.npz"),
          QStringLiteral("--steps"),   QString::number(kSteps),
          QStringLiteral("--threads"), QStringLiteral("1"),
          QStringLiteral("--lr"),      QStringLiteral("0.05"),
          QStringLiteral("--set"),     QStringLiteral("ranks.bucket=4096"),
          QStringLiteral("--project"), project};
}

std::shared_ptr<const TimelineModel> timelineOf(WindowDriver& w) {
  return static_cast<TimelineView*>(w.view(QStringLiteral("timeline")))->canvas().model();
}

}  // namespace

class RanksTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    qputenv("OMPI_ALLOW_RUN_AS_ROOT", "1");
    qputenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    applyTheme(*qApp, Theme::kLight);
  }

  void everyRankOfAProjectIsShown() {
    const QString mpirun = QStandardPaths::findExecutable(QStringLiteral("mpirun"));
    if (mpirun.isEmpty()) QSKIP("mpirun is not installed (package openmpi-bin)");
    const QString project = folder_.filePath(QStringLiteral("two.stepscope"));
    QProcess run;
    run.setProcessChannelMode(QProcess::MergedChannels);
    run.start(mpirun, QStringList{QStringLiteral("--oversubscribe"), QStringLiteral("-n"), QStringLiteral("2"),
                                  QStringLiteral(REAL_WORKER)} +
                          train(project) + QStringList{QStringLiteral("--distributed"), QStringLiteral("mpi")});
    QVERIFY2(run.waitForFinished(120'000) && run.exitCode() == 0, run.readAll().constData());

    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    const auto& steps = w->store().steps();
    QCOMPARE(steps.size(), std::size_t(kSteps));
    const RankTimes& ranks = RankTimes::of(w->store().project());
    for (const StepPtr& step : steps) {
      const StepRanksPtr of = ranks.ofStep(step->step());
      QVERIFY(of != nullptr);
      QCOMPARE(of->ranks_size(), 2);
      QVERIFY(step->spans_size() > 0);
      QCOMPARE(of->ranks(1).spans_size(), step->spans_size());  // both ran one plan
      QVERIFY(of->ranks(0).has_loss() && of->ranks(1).has_loss());
      QVERIFY(std::abs((of->ranks(0).loss() + of->ranks(1).loss()) / 2 - step->loss()) < 1e-6);
    }

    // Timeline: the rows of a rank lie together; those of its instructions within its step; waiting and moving in turn.
    QVERIFY(w.loop().wait([&] { return timelineOf(w) != nullptr && timelineOf(w)->ranks() == 2; }));
    const auto model = timelineOf(w);
    QCOMPARE(model->steps().size(), std::size_t(kSteps));
    std::int64_t instructions[2] = {0, 0};
    int waits[2] = {0, 0}, moves[2] = {0, 0}, rank = 0;
    int collectiveRow = -1;
    for (const TimelineRow& row : model->rows()) {
      QVERIFY(row.rank >= rank);  // in their order
      rank = row.rank;
      for (const TimelineSlice& slice : row.slices) {
        const auto of = ranks.ofStep(steps[static_cast<std::size_t>(slice.step)]->step())->ranks(rank);
        QVERIFY2(slice.begin >= of.begin_ns() && slice.end <= of.begin_ns() + of.ns() + 1'000'000,
                 qPrintable(QStringLiteral("%1 of %2").arg(slice.begin - of.begin_ns()).arg(of.ns())));
        if (row.kind == Kind::kInstructions) ++instructions[rank];
        if (row.kind == Kind::kCollectives) ++(model->waits(slice) ? waits : moves)[rank];
      }
      if (row.kind == Kind::kCollectives && rank == 1) collectiveRow = static_cast<int>(&row - model->rows().data());
    }
    QVERIFY(instructions[0] > 0);
    QCOMPARE(instructions[1], instructions[0]);
    QVERIFY(collectiveRow >= 0);
    QVERIFY(waits[0] >= 2 * kSteps);  // two buckets of gradients at least, and running statistics
    QCOMPARE(waits[1], waits[0]);
    QCOMPARE(moves[0], waits[0]);
    QCOMPARE(moves[1], waits[0]);
    QVERIFY(w.view(QStringLiteral("timeline"))->headerText().contains(QStringLiteral("2 ranks")));

    // A collective leads to its instruction, and says what its rank waited.
    const auto& slices = model->rows()[static_cast<std::size_t>(collectiveRow)].slices;
    const auto bucket =
        std::find_if(slices.begin(), slices.end(), [](const TimelineSlice& s) { return s.instruction >= 0; });
    QVERIFY(bucket != slices.end());
    QCOMPARE(QString::fromStdString(w->store().plan()->instruction(bucket->instruction)->op()), QStringLiteral("AllReduce"));
    QVERIFY(exchangeTip(*model, *bucket).contains(QStringLiteral("rank 1 waited")));

    // Tables: what the file's own report says, and the same in SQL.
    const RankTimes::Table& table = ranks.table();
    QCOMPARE(table.ranks.size(), std::size_t(2));
    QVERIFY(table.collectives.size() >= 3);
    QCOMPARE(table.ranks[0].steps, std::int64_t(kSteps - 1));  // the first warms up
    QCOMPARE(table.ranks[0].last + table.ranks[1].last, std::int64_t(kSteps - 1));
    View* view = w.view(QStringLiteral("ranks"));
    QVERIFY(view->emptyText().isEmpty());
    const auto* rows = view->findChild<RowTableView*>()->model();
    auto* collectives = view->findChild<RowTableView*>(QStringLiteral("rank_collectives"));
    QVERIFY(w.loop().wait([&] { return collectives->model()->rowCount() == static_cast<int>(table.collectives.size()); }));
    QVERIFY(rows->rowCount() == 2);
    QVERIFY(stepscope::ranks::summary(table).contains(QStringLiteral("computes longest")));
    w.picture(QStringLiteral("ranks-table"));
    w.loop().act([&] { emit collectives->clicked(collectives->model()->index(0, 0)); });
    QCOMPARE(QString::fromStdString(w->store().plan()->instruction(w->selection().selection().instruction)->op()),
             QStringLiteral("AllReduce"));

    // Memory: each rank as planned and as measured.
    auto* memory = static_cast<MemoryView*>(w.view(QStringLiteral("memory")));
    QVERIFY(memory->ranks().isVisibleTo(memory));
    QCOMPARE(memory->ranks().shown().size(), std::size_t(2));
    for (const RankTotals& each : memory->ranks().shown()) {
      QVERIFY(each.plannedBytes > 0 && each.peakBytes > 0);
      QCOMPARE(each.plannedBytes, std::int64_t(ranks.ofStep(kSteps - 1)->ranks(each.rank).planned_bytes()));
    }
    w.picture(QStringLiteral("ranks-memory"));
    w.view(QStringLiteral("timeline"));
    w.picture(QStringLiteral("ranks-timeline"));
    QVERIFY_LOOP(w);
  }

  // What is shown of ranks is gone with their project.
  void aRunOfOneProcessHasNoRanks() {
    const QString project = folder_.filePath(QStringLiteral("one.stepscope"));
    QProcess run;
    run.start(QStringLiteral(REAL_WORKER), train(project));
    QVERIFY2(run.waitForFinished(120'000) && run.exitCode() == 0, run.readAllStandardError().constData());
    WindowDriver w;
    if (const QString two = folder_.filePath(QStringLiteral("two.stepscope")); QFileInfo::exists(two)) {
      QVERIFY_DONE(w.openRecorded(two), w);
      QCOMPARE(RankTimes::of(w->store().project()).count(), 2);
    }
    QVERIFY_DONE(w.openRecorded(project), w);
    QVERIFY(w.loop().wait([&] { return timelineOf(w) != nullptr && timelineOf(w)->ranks() == 1; }));
    QCOMPARE(RankTimes::of(w->store().project()).count(), 0);
    QVERIFY(w.view(QStringLiteral("ranks"))->emptyText().contains(QStringLiteral("mpirun")));
    auto* memory = static_cast<MemoryView*>(w.view(QStringLiteral("memory")));
    QVERIFY(!memory->ranks().isVisibleTo(memory));
    for (const TimelineRow& row : timelineOf(w)->rows()) QVERIFY(row.kind == Kind::kInstructions && row.rank == 0);
  }
};

SS_QT_CLASS(WatchedApplication, RanksTest)
#include "tst_ranks.moc"
