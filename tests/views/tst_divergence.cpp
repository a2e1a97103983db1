// SPDX-License-Identifier: GPL-3.0-or-later
// Where the numbers of two runs part: the verdict, the table, the curves, the tolerance.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include "tests/support/qt_classes.h"
#include "tests/views/two_runs.h"
#include "views/common/comparison_cells.h"
#include "views/common/tokens.h"
#include "views/compare/compare_curves.h"
#include "views/compare/compare_view.h"
#include "views/compare/numbers_page.h"
#include "views/compare/tolerance_bar.h"

using namespace stepscope;

class DivergenceTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void whatDiffersIsPrintedWithDigitsThatDiffer() {
    Divergence d{3, QStringLiteral("loss"), 2.5, 2.5000000000001, {}, {}};
    QVERIFY2(comparison::divergenceText(d).endsWith(QStringLiteral(" and 2.5000000000001")),
             qPrintable(comparison::divergenceText(d)));
    d.b = 2.75;
    QVERIFY(comparison::divergenceText(d).endsWith(QStringLiteral("2.500000 and 2.750000")));
  }

  void whatOneRunDidNotMeasureIsNamedAndNoDivergence() {
    RunComparison c = madeComparison();
    c.divergences.clear();
    c.first.reset();
    c.unequal.reset();
    c.outside = 0;
    c.unmeasured = QStringLiteral("B did not measure the gradient norm");
    Desk desk;
    desk.store.project().setRuns({c.a.run, c.b.run});
    CompareView view(desk.context);
    desk.store.project().setCompareRequest(c.request);
    desk.store.project().setRunComparison(std::make_shared<const RunComparison>(c), {});
    const auto* verdict = view.findChild<QLabel*>(QStringLiteral("compare_verdict"));
    QVERIFY(verdict);
    QCOMPARE(verdict->text(),
             QStringLiteral("All 3 steps are equal in every bit of what was recorded.\nB did not measure the "
                            "gradient norm."));
    CompareNumbersPage page(desk.context);
    QVERIFY2(page.emptyText().contains(QStringLiteral("Not compared: B did not measure the gradient norm.")),
             qPrintable(page.emptyText()));
  }

  // A scale where there is something to measure by it: that of what was compared where all is equal but for rounding, no
  // numbers without a pair of losses.
  void noDifferenceIsOnTheScaleOfWhatWasCompared() {
    RunComparison c = madeComparison();
    const auto labels = [&c](QCPAxis::AxisType side) {
      CompareCurves curves;
      curves.resize(500, 400);
      curves.setComparison(std::make_shared<const RunComparison>(c));
      curves.replot();
      const QCPAxis* axis = curves.axisRect(1)->axis(side);
      return axis->visible() && axis->tickLabels() ? QStringList(axis->tickVectorLabels().toList()) : QStringList();
    };
    c.steps = {{0, 3.0, 3.0, 1.0, 1.0}, {1, 2.5, 2.25, 1.0, 1.5}};
    QVERIFY(labels(QCPAxis::atLeft).size() > 2 && labels(QCPAxis::atRight).size() > 2);
    c.steps = {{0, 3.0, 3.0, 3.573375, 3.573375 + 1e-14}, {1, 2.5, {}, {}, {}}};
    for (const auto& [side, most] : {std::pair(QCPAxis::atLeft, 3.0), std::pair(QCPAxis::atRight, 3.573375)}) {
      const QStringList shown = labels(side);
      QVERIFY2(shown.size() >= 3 && shown.contains(QStringLiteral("0")), qPrintable(shown.join(' ')));
      QVERIFY2(shown.back().toDouble() > most / 2 && shown.back().toDouble() <= 1.12 * most, qPrintable(shown.join(' ')));
    }
    c.steps = {{0, 3.0, {}, {}, {}}, {1, {}, 2.5, {}, {}}};
    QCOMPARE(labels(QCPAxis::atLeft), QStringList());
    QCOMPARE(labels(QCPAxis::atRight), QStringList());
  }

  // Texts are broken into lines, and the dots at both ends are whole.
  void aNarrowPanelCutsNothing() {
    RunComparison c = madeComparison();
    c.steps = {{0, 3.0, 3.0, {}, {}}, {1, 2.5, 2.25, {}, {}}, {2, 2.0, 1.5, {}, {}}};
    CompareCurves curves;
    curves.resize(230, 300);
    curves.show();
    curves.setComparison(std::make_shared<const RunComparison>(c));
    curves.replot();
    const QCPAxis* steps = curves.axisRect(1)->axis(QCPAxis::atBottom);
    const QStringList lines = steps->label().split('\n');
    QVERIFY2(lines.size() > 1, qPrintable(steps->label()));
    const int middle = curves.axisRect(1)->center().x();
    for (const QString& line : lines) {
      const int half = QFontMetrics(steps->labelFont()).horizontalAdvance(line) / 2;
      QVERIFY2(middle - half >= 0 && middle + half <= curves.width(), qPrintable(line));
    }
    constexpr int kDot = 4;
    const QRect plot = curves.axisRect(0)->rect();
    const QCPAxis* upper = curves.axisRect(0)->axis(QCPAxis::atBottom);
    QVERIFY(upper->coordToPixel(0) - kDot >= plot.left() && upper->coordToPixel(2) + kDot <= plot.right());
    curves.resize(900, 300);
    curves.replot();
    QCOMPARE(steps->label().count('\n'), 0);
  }

  void aDivergenceSelectsItsValueInEveryView() {
    Desk desk;
    desk.store.setGraph(comparedGraph());
    CompareNumbersPage view(desk.context);
    desk.store.project().setRunComparison(std::make_shared<const RunComparison>(madeComparison()), {});
    const auto* model = tableOf(view);
    QAbstractItemModelTester tester(const_cast<QAbstractItemModel*>(model),
                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(model->rowCount(), 3);
    QCOMPARE(cell(model, 0, 6), QStringLiteral("−0.2500"));
    QCOMPARE(cell(model, 1, 5), QStringLiteral("NaN"));
    QCOMPARE(cell(model, 2, 5), QStringLiteral("–"));
    auto* table = view.findChild<QTableView*>();
    table->setCurrentIndex(model->index(1, 0));
    QCOMPARE(desk.selection.selection().value, 11);
    table->setCurrentIndex(model->index(0, 0));
    QCOMPARE(desk.selection.selection().value, 10);
  }

  void emptyReadingFailedAndEqualLookDifferent() {
    Desk desk;
    CompareNumbersPage view(desk.context);
    auto& facts = desk.store.project();
    QStringList seen{view.emptyText()};
    const auto note = [&] {
      QVERIFY(!view.emptyText().isEmpty());
      QVERIFY2(!seen.contains(view.emptyText()), qPrintable(view.emptyText()));
      seen << view.emptyText();
    };
    facts.setProjectPath(QStringLiteral("p.stepscope"));
    note();
    facts.setRuns({entry(1, 3)});
    note();
    QVERIFY(view.emptyText().contains(QStringLiteral("New run from step 0")));
    facts.setRuns({entry(1, 3), entry(2, 3)});
    note();
    facts.setCompareRequest({1, 2, 0, 0, {}});
    note();
    facts.setRunComparison(nullptr, QStringLiteral("run '2': not in this project"));
    note();
    QVERIFY(view.emptyText().contains(QStringLiteral("run '2'")));
    RunComparison equal = madeComparison();
    equal.divergences.clear();
    equal.outside = 0;
    equal.first.reset();
    facts.setRunComparison(std::make_shared<const RunComparison>(equal), {});
    note();
    QVERIFY(view.emptyText().contains(QStringLiteral("First unequal")));
    equal.both = 0;
    facts.setRunComparison(std::make_shared<const RunComparison>(equal), {});
    note();
  }

  void aToleranceIsANumberFromZero() {
    Desk desk;
    auto& facts = desk.store.project();
    facts.setCompareRequest({1, 2, 1e-5, 1e-8, {}});
    ToleranceBar view(desk.context);
    facts.setRunComparison(std::make_shared<const RunComparison>(madeComparison()), {});
    QVERIFY(view.findChild<QLabel*>(QStringLiteral("compare_verdict"))->text().contains(QStringLiteral("step 1")));
    QSignalSpy notes(&desk.wishes, &Wishes::status);
    std::vector<CompareRequest> asked;
    connect(&desk.wishes, &Wishes::compareRuns, this, [&](const CompareRequest& r) { asked.push_back(r); });
    auto* rtol = view.findChild<QLineEdit*>(QStringLiteral("compare_rtol"));
    for (const char* wrong : {"-1", "nan", "much", ""}) {
      rtol->setText(QString::fromLatin1(wrong));
      emit rtol->editingFinished();
    }
    QCOMPARE(notes.count(), 4);
    QVERIFY(asked.empty());
    QCOMPARE(rtol->text().toDouble(), 1e-5);
    rtol->setText(QStringLiteral("1e-3"));
    emit rtol->editingFinished();
    QCOMPARE(asked.size(), std::size_t{1});
    QCOMPARE(asked[0].rtol, 1e-3);
    QCOMPARE(asked[0].atol, 1e-8);
  }
};

SS_QT_CLASS(QApplication, DivergenceTest)
#include "tst_divergence.moc"
