// SPDX-License-Identifier: GPL-3.0-or-later
// Times and bytes of two runs beside each other: differences, their statistics, and when nothing is judged.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QTest>
#include <limits>

#include "tests/support/qt_classes.h"
#include "tests/views/two_runs.h"
#include "views/common/comparison_cells.h"
#include "views/common/format.h"
#include "views/common/run_times.h"
#include "views/common/tokens.h"
#include "views/compare/compare_rows.h"
#include "views/compare/compare_view.h"
#include "views/compare/divergence_rows.h"
#include "views/compare/times_page.h"

using namespace stepscope;

namespace {

QStringList rolesOf(const std::vector<TableRow>& rows) {
  QStringList roles;
  for (const TableRow& row : rows)
    for (const TableCell& cell : row.cells) roles << cell.role;
  return roles;
}

}  // namespace

class ComparedTimesTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void differencesCarryTheirSign() {
    QCOMPARE(format::timeDifference(0), QStringLiteral("0"));
    QCOMPARE(format::timeDifference(1'240'000), QStringLiteral("+1.24 ms"));
    QCOMPARE(format::timeDifference(-123), QStringLiteral("−123 ns"));
    QCOMPARE(format::timeDifference(std::numeric_limits<std::int64_t>::min()).left(1), QStringLiteral("−"));
    QCOMPARE(format::bytesDifference(-3 * 1024), QStringLiteral("−3.00 KiB"));
    QCOMPARE(format::change(100, 108.24), QStringLiteral("+8.2 %"));
    QCOMPARE(format::change(100, 50), QStringLiteral("−50 %"));
    QCOMPARE(format::change(100, 100.01), QStringLiteral("0 %"));
    QCOMPARE(format::change(0, 5), QString());
  }

  void everyTableKeepsTheContractOfModels() {
    const RunComparison c = madeComparison();
    RowTableModel model(timeColumns(Times::kOperators));
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    for (const Times which : {Times::kOperators, Times::kStepPhases, Times::kBuild, Times::kMemory}) {
      const auto columns = timeColumns(which);
      model.setColumns(columns, timeRows(c, which, comparedPlan().get()));
      for (const TableColumn& column : columns)
        QVERIFY2(!column.tip.isEmpty() || column.title.isEmpty(), qPrintable(column.title));
    }
    model.setColumns(divergenceColumns(), divergenceRows(c, comparedGraph().get()));
    QCOMPARE(model.rowCount(), 3);
    model.setColumns({{QString(), QString()}, {QString(), QString()}, {QString(), QString()}, {QString(), QString()}},
                     summaryRows(c));
    QVERIFY(model.rowCount() >= 8);
  }

  // A run whose steps were all stopped in has no time of a step, and nothing is less than what is not there.
  void whatOneRunLacksHasNoDifference() {
    RunComparison c = madeComparison();
    const auto times = [&c] {
      QStringList texts;
      for (const TableRow& row : summaryRows(c))
        if (row.cells[0].text.startsWith(QStringLiteral("Step, ")))
          texts << row.cells[1].text << row.cells[2].text << row.cells[3].text;
      return texts;
    };
    c.a.step = {3, 2'000, 3'000, 1'000, 3'000};
    c.b.step = {3, 1'000, 3'000, 1'000, 3'000};
    QCOMPARE(times()[2], QStringLiteral("−1.00 µs"));
    c.b.step = {};
    QCOMPARE(times().size(), 6);
    QVERIFY(times()[0] != QStringLiteral("–"));
    for (const int row : {0, 3}) {
      QCOMPARE(times()[row + 1], QStringLiteral("–"));
      QCOMPARE(times()[row + 2], QString());
    }
  }

  // Steps that ran in other ways, or on a busy machine, are set beside each other with a word, and never in green.
  void timesThatWereNotTakenAlikeAreNotJudged() {
    RunComparison c = madeComparison();
    c.memory.clear();
    PairTimes times;
    times.a.speed = times.b.speed = QStringLiteral("recorded");
    const auto green = [&] {
      return rolesOf(timeRows(c, Times::kOperators, nullptr, times.comparable())).contains(u"ok") ||
             rolesOf(summaryRows(c, times)).contains(u"ok");
    };
    QVERIFY(green());
    QVERIFY(comparison::timesNote(times).isEmpty());
    times.b.speed = QStringLiteral("walked");
    QVERIFY(!green());
    QVERIFY(comparison::timesNote(times).contains(QStringLiteral("A recorded, B walked")));
    times.a.speed = times.b.speed = QStringLiteral("2 recorded, 3 full speed");
    QVERIFY2(!green(), "a mixture is like no other");
    times.a.speed = times.b.speed = QStringLiteral("recorded");
    times.b.measured = times.b.busy = true;
    times.b.waitShare = 0.25;
    QVERIFY(!green());
    QVERIFY2(comparison::timesNote(times).contains(QStringLiteral("busy machine: it waited for 25 %")),
             qPrintable(comparison::timesNote(times)));
    QVERIFY(rolesOf(summaryRows(c, times)).contains(u"warn"));
    Desk desk;
    desk.store.project().setRuns({c.a.run, c.b.run});
    CompareView view(desk.context);
    desk.store.project().setCompareRequest(c.request);
    desk.store.project().setRunComparison(std::make_shared<const RunComparison>(c), {});
    RunTimes::of(desk.store.project()).set({{1, times.a}, {2, times.b}});
    view.resize(900, 400);
    view.show();
    const auto* note = view.findChild<QLabel*>(QStringLiteral("compare_note"));
    QVERIFY(note && note->isVisible() && note->text().contains(QStringLiteral("busy")));
    QVERIFY(!note->text().contains('\n'));
    const QString threads = QStringLiteral("1 and 4 threads: other bits");
    RunTimes::of(desk.store.project()).setNotes(c.request, threads);
    QCOMPARE(note->text().section('\n', 1), threads);
    CompareRequest other = c.request;
    std::swap(other.a, other.b);
    RunTimes::of(desk.store.project()).setNotes(other, threads);
    QVERIFY2(!note->text().contains(threads), "it is not of the pair that is shown");
  }

  // A first step takes longer than those after it: what one run measured in it alone has no difference to the other run.
  void warmUpIsNotSetAgainstOtherSteps() {
    const RunComparison c = madeComparison();
    const QString dash = comparison::absent().text;
    const auto differences = [&c](Times which, bool alike) {
      QStringList texts;
      for (const TableRow& row : timeRows(c, which, nullptr, true, alike)) texts << row.cells[3].text << row.cells[4].text;
      return texts;
    };
    for (const Times which : {Times::kOperators, Times::kStepPhases}) {
      QVERIFY(differences(which, true).first() != dash);
      const QStringList apart = differences(which, false);
      QCOMPARE(apart.count(dash), apart.size());
      QVERIFY(timeRows(c, which, nullptr, true, false)[0].cells[2].text != dash);
      Desk desk;
      desk.store.project().setRunComparison(std::make_shared<const RunComparison>(c), {});
      RunTimes::of(desk.store.project()).setNotes(c.request, QStringLiteral("run B recorded no step but warm-up"), false);
      CompareTimesPage page(desk.context, which);
      QCOMPARE(page.headerText(), QStringLiteral("one run has only warm-up"));
    }
    QVERIFY(!differences(Times::kBuild, false).contains(dash));
  }

  void timesStandWithTheirStatistics() {
    const auto rows = timeRows(madeComparison(), Times::kOperators, comparedPlan().get());
    QCOMPARE(rows.size(), std::size_t{2});
    const auto& matmul = rows[0].cells;
    QStringList texts;
    for (const TableCell& c : matmul) texts << c.text;
    QCOMPARE(texts, (QStringList{"MatMul  forward", "4.00 µs", "2.00 µs", "−2.00 µs", "−50 %", "10", "100 ns", "120 ns",
                                 "10", "50 ns", "60 ns", "5"}));
    QCOMPARE(matmul[3].role, QStringLiteral("ok"));
    // What a run does not have is no zero.
    QCOMPARE(rows[1].cells[2].text, QStringLiteral("–"));
    QCOMPARE(rows[1].cells[9].text, QStringLiteral("–"));
    QCOMPARE(rows[0].target.instruction, 0);
    QCOMPARE(rows[1].target.instruction, 1);
    const auto memory = timeRows(madeComparison(), Times::kMemory, nullptr);
    QCOMPARE(memory[0].cells[3].text, QStringLiteral("−1.00 KiB"));
    QCOMPARE(memory[1].cells[1].text, QStringLiteral("–"));
  }

  void timesAreOneTableAPage() {
    Desk desk;
    CompareTimesPage operators(desk.context, Times::kOperators), build(desk.context, Times::kBuild),
        memory(desk.context, Times::kMemory);
    desk.store.project().setRunComparison(std::make_shared<const RunComparison>(madeComparison()), {});
    QCOMPARE(cell(tableOf(operators), 0, 0), QStringLiteral("MatMul  forward"));
    QCOMPARE(cell(tableOf(memory), 0, 0), QStringLiteral("planned"));
    QVERIFY(operators.emptyText().isEmpty() && memory.emptyText().isEmpty());
    QVERIFY(build.emptyText().contains(QStringLiteral("Neither run recorded")));
  }
};

SS_QT_CLASS(QApplication, ComparedTimesTest)
#include "tst_compared_times.moc"
