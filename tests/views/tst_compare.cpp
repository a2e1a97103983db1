// SPDX-License-Identifier: GPL-3.0-or-later
// The pair of runs and the pages below it, without a file and without a worker.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QToolButton>

#include "tests/support/qt_classes.h"
#include "tests/views/two_runs.h"
#include "views/common/tokens.h"
#include "views/compare/compare_rows.h"
#include "views/compare/compare_view.h"
#include "views/compare/settings_page.h"
#include "views/runs/runs_view.h"

using namespace stepscope;

class CompareTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  // What tells runs apart stands first; what all have alike comes last.
  void runsAreToldApartByWhatDiffers() {
    RunEntry a = entry(1, 40), b = entry(2, 40);
    a.optimizer = b.optimizer = QStringLiteral("sgd");
    a.settings[QStringLiteral("lr")] = QStringLiteral("0.05");
    b.settings[QStringLiteral("lr")] = QStringLiteral("0.2");
    const auto titles = runTitles({a, b});
    QVERIFY2(titles[0].startsWith(QStringLiteral("1  lr 0.05 · 40 steps")), qPrintable(titles[0]));
    QVERIFY2(titles[1].startsWith(QStringLiteral("2  lr 0.2 · 40 steps")), qPrintable(titles[1]));
    QVERIFY2(titles[1].endsWith(QStringLiteral(" · digits · sgd")), qPrintable(titles[1]));
    // A setting may be empty text; what one of them does not know is not there.
    a.settings[QStringLiteral("recompute.plan")] = QStringLiteral("block:1:-1");
    b.settings[QStringLiteral("recompute.plan")] = QString();
    QVERIFY2(runTitles({a, b})[1].startsWith(QStringLiteral("2  lr 0.2 · recompute.plan none · ")),
             qPrintable(runTitles({a, b})[1]));
    b.settings.erase(QStringLiteral("recompute.plan"));
    QVERIFY2(runTitles({a, b})[1].startsWith(QStringLiteral("2  lr 0.2 · recompute.plan – · ")),
             qPrintable(runTitles({a, b})[1]));
    // Of many runs only those that have it say so.
    const auto many = runTitles({a, b, entry(3, 40)});
    QVERIFY2(many[0].contains(QStringLiteral("recompute.plan block:1:-1")), qPrintable(many[0]));
    QVERIFY2(!many[1].contains(QStringLiteral("recompute.plan")) && many[1].contains(QStringLiteral("lr 0.2")),
             qPrintable(many[1]));
    a.settings.erase(QStringLiteral("recompute.plan"));
    b.name = QStringLiteral("warm\u202E");
    QVERIFY2(runTitles({a, b})[1].startsWith(QStringLiteral("2  warm")) && !runTitles({a, b})[1].contains(QChar(0x202E)),
             qPrintable(runTitles({a, b})[1]));
    // In the boxes, and in the third column of Runs while there is a difference.
    Desk desk;
    desk.store.project().setRuns({a, entry(2, 40)});
    CompareView view(desk.context);
    QVERIFY(view.findChild<QComboBox*>(QStringLiteral("compare_a"))->itemText(1).contains(QStringLiteral("lr 0.05")));
    RunsView runs(desk.context);
    const auto* model = tableOf(runs);
    QCOMPARE(cell(model, 0, 2), QStringLiteral("lr 0.05"));
    const auto* table = runs.findChild<QTableView*>();
    QVERIFY(!table->isColumnHidden(2));
    desk.store.project().setRuns({entry(1, 40), entry(2, 40)});
    tableOf(runs);
    QVERIFY(table->isColumnHidden(2));
  }

  void theNewestTwoRunsAreProposedAndAUsersPairStays() {
    Desk desk;
    CompareView view(desk.context);
    auto& facts = desk.store.project();
    std::vector<CompareRequest> asked;
    connect(&desk.wishes, &Wishes::compareRuns, this, [&](const CompareRequest& r) {
      asked.push_back(r);
      facts.setCompareRequest(r);
    });
    view.resize(900, 400);
    view.show();
    facts.setRuns({entry(1, 3)});
    QVERIFY(asked.empty());
    facts.setRuns({entry(1, 3), entry(2, 3)});
    QCOMPARE(asked.size(), std::size_t{1});
    QCOMPARE(asked.back().a, 1);
    QCOMPARE(asked.back().b, 2);
    facts.setRuns({entry(1, 3), entry(2, 3), entry(3, 0)});
    QCOMPARE(asked.size(), std::size_t{2});
    QCOMPARE(asked.back().a, 2);
    QCOMPARE(asked.back().b, 3);
    // A user's choice.
    auto* a = view.findChild<QComboBox*>(QStringLiteral("compare_a"));
    a->setCurrentIndex(2);  // the newest first
    emit a->activated(2);
    QCOMPARE(asked.back().a, 1);
    QCOMPARE(asked.back().b, 3);
    facts.setRuns({entry(1, 3), entry(2, 3), entry(3, 0), entry(4, 0)});
    QCOMPARE(asked.size(), std::size_t{3});
    // A run of the pair that went on is read again.
    RunComparison c = madeComparison();
    c.a.run = entry(1, 3);
    c.b.run = entry(3, 0);
    facts.setRunComparison(std::make_shared<const RunComparison>(c), {});
    facts.setRuns({entry(1, 3), entry(2, 3), entry(3, 5), entry(4, 0)});
    QCOMPARE(asked.size(), std::size_t{4});
    facts.setRunComparison(std::make_shared<const RunComparison>(c), {});
    // A run of another project, which the user has just fetched, stands as B.
    facts.setOtherRuns(QStringLiteral("/elsewhere/other.stepscope"), {entry(7, 2)});
    QCOMPARE(asked.size(), std::size_t{5});
    QCOMPARE(asked.back().b, 7);
    QCOMPARE(asked.back().otherProject, QStringLiteral("/elsewhere/other.stepscope"));
    QVERIFY(!view.findChild<QToolButton*>(QStringLiteral("compare_swap"))->isEnabled());
  }

  void bothRunsStandBesideTheirNames() {
    Desk desk;
    CompareView view(desk.context);
    view.resize(634, 400);  // the centre of a window of 1280
    view.show();
    auto& facts = desk.store.project();
    facts.setRuns({entry(1, 3), entry(2, 3)});
    facts.setRunComparison(std::make_shared<const RunComparison>(madeComparison()), {});
    QCoreApplication::processEvents();
    auto* table = view.findChild<QTableView*>(QStringLiteral("compare_summary"));
    QVERIFY(table->model()->rowCount() > 5);
    int sum = 0;
    for (int c = 0; c < 4; ++c) sum += table->columnWidth(c);
    QVERIFY2(table->columnWidth(0) < table->viewport()->width() / 2, qPrintable(QString::number(table->columnWidth(0))));
    QVERIFY2(sum <= table->viewport()->width(), qPrintable(QString::number(sum)));
    const QFontMetrics metrics(table->font());
    for (int r = 0; r < table->model()->rowCount(); ++r) {
      const QString what = table->model()->index(r, 0).data().toString();
      if (!what.contains(QStringLiteral("loss")) && !what.startsWith(QStringLiteral("Step, "))) continue;
      for (int c = 1; c < 4; ++c) {
        const QString number = table->model()->index(r, c).data().toString();
        QVERIFY2(metrics.horizontalAdvance(number) + 10 <= table->columnWidth(c), qPrintable(number));
      }
    }
  }

  void settingsThatDifferAreRowsAndNoneIsASentence() {
    Desk desk;
    CompareSettingsPage view(desk.context);
    desk.store.project().setRunComparison(std::make_shared<const RunComparison>(madeComparison()), {});
    const auto* model = tableOf(view);
    QAbstractItemModelTester tester(const_cast<QAbstractItemModel*>(model),
                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(model->rowCount(), 2);
    QCOMPARE(cell(model, 1, 0), QStringLiteral("a⟨U+202E⟩b"));
    QVERIFY(view.emptyText().isEmpty());
    RunComparison same = madeComparison();
    same.options.clear();
    desk.store.project().setRunComparison(std::make_shared<const RunComparison>(same), {});
    QVERIFY(view.emptyText().contains(QStringLiteral("same in both runs")));
  }

  // One view: the pair and the verdict stand above every page, and what a page lacks it says in its own place.
  void aPageComesToTheFrontUnderThePair() {
    Desk desk;
    CompareView view(desk.context);
    view.resize(900, 500);
    view.show();
    auto& facts = desk.store.project();
    facts.setCompareRequest({1, 2, 1e-5, 1e-8, {}});
    facts.setRuns({entry(1, 3), entry(2, 3)});
    facts.setRunComparison(std::make_shared<const RunComparison>(madeComparison()), {});
    auto* bar = view.findChild<QTabBar*>(QStringLiteral("compare_pages"));
    auto* empty = view.findChild<QLabel*>(QStringLiteral("compare_empty"));
    QStringList titles;
    for (int i = 0; i < bar->count(); ++i) {
      QTest::mouseClick(bar, Qt::LeftButton, {}, bar->tabRect(i).center());
      titles << bar->tabText(i);
      QVERIFY2(view.findChild<QComboBox*>(QStringLiteral("compare_a"))->isVisible(), qPrintable(titles.back()));
      QVERIFY2(view.findChild<QLabel*>(QStringLiteral("compare_verdict"))->text().contains(QStringLiteral("step 1")),
               qPrintable(titles.back()));
      const View* front = view.findChild<View*>(view.saveState());
      QVERIFY2(front && front->title() == titles.back(), qPrintable(titles.back()));
      QCOMPARE(front->isVisible(), titles.back() != u"Build");
      QCOMPARE(empty->isVisible(), titles.back() == u"Build");
    }
    QCOMPARE(titles, (QStringList{"Runs", "Settings", "First divergence", "Operators", "Phases", "Build", "Memory"}));
    // The page in front is what is remembered; one that there is not changes nothing.
    view.restoreState(QStringLiteral("compare_numbers"));
    QCOMPARE(bar->tabText(bar->currentIndex()), QStringLiteral("First divergence"));
    QVERIFY2(view.headerText().contains(QStringLiteral("3 outside")), qPrintable(view.headerText()));
    view.restoreState(QStringLiteral("divergence"));
    QCOMPARE(view.saveState(), QStringLiteral("compare_numbers"));
    // While the runs are read again, the page says so.
    facts.setCompareRequest({2, 1, 1e-5, 1e-8, {}});
    facts.setRunComparison(nullptr, QStringLiteral("run '2': not in this project"));
    QVERIFY(empty->isVisible() && empty->text().contains(QStringLiteral("run '2'")));
  }

  void aRowOfRunsGoesIntoThePair() {
    Desk desk;
    RunsView view(desk.context);
    desk.store.project().setRuns({entry(1, 3), entry(2, 3)});
    desk.store.project().setCompareRequest({1, 2, 0, 0, {}});
    const auto* model = tableOf(view);
    QCOMPARE(cell(model, 0, 0), QStringLiteral("A"));
    QCOMPARE(cell(model, 1, 0), QStringLiteral("B"));
  }
};

SS_QT_CLASS(QApplication, CompareTest)
#include "tst_compare.moc"
