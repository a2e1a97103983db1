// SPDX-License-Identifier: GPL-3.0-or-later
// The pair of runs and the pages below it, without a file and without a worker.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QToolButton>

#include "tests/support/qt_classes.h"
#include "tests/views/two_runs.h"
#include "views/common/project_reads.h"
#include "views/common/tokens.h"
#include "views/compare/compare_curves.h"
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

  // What is there is dimmed and says of what it is, once the reading takes longer than a moment; it can be cancelled.
  void whatIsReadAgainIsDimmed() {
    Desk desk;
    CompareView view(desk.context);
    RunsView runs(desk.context);
    for (View* each : std::initializer_list<View*>{&view, &runs}) {
      each->resize(900, 500);
      each->show();
      if (each->headerWidget()) each->headerWidget()->show();
    }
    auto& facts = desk.store.project();
    ProjectReads& reads = ProjectReads::of(facts);
    facts.setRuns({entry(1, 3), entry(2, 3), entry(3, 3)});
    facts.setCompareRequest({1, 2, 1e-5, 1e-8, {}});
    RunComparison before = madeComparison();
    before.request = facts.compareRequest();
    facts.setRunComparison(std::make_shared<const RunComparison>(before), {});
    const auto veil = [](View& of) { return of.findChild<QWidget*>(QStringLiteral("reading_veil")); };
    const auto* cancel = view.findChild<QPushButton*>(QStringLiteral("compare_cancel"));
    const auto* cancelRuns = runs.findChild<QPushButton*>(QStringLiteral("runs_cancel"));
    QVERIFY(!veil(view)->isVisible() && !veil(runs)->isVisible() && cancel->isHidden() && cancelRuns->isHidden());
    facts.setCompareRequest({2, 3, 1e-5, 1e-8, {}});
    reads.begin(ProjectReads::What::kComparison);
    QVERIFY2(!veil(view)->isVisible(), "what takes a moment does not flicker");
    QTRY_VERIFY(veil(view)->isVisible());
    QCOMPARE(veil(view)->accessibleName(), QStringLiteral("Reading run 2 and run 3 … below are run 1 and run 2"));
    QVERIFY(!cancel->isHidden() && view.headerText().contains(QStringLiteral("reading")));
    // The darkest of a stretch of text: dimmed, nothing is as dark.
    const auto darkest = [](QWidget& area) {
      const QImage image = area.grab().toImage();
      int least = 255;
      for (int y = image.height() / 2; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) least = std::min(least, qGray(image.pixel(x, y)));
      return least;
    };
    auto* both = veil(view)->parentWidget();
    const int dimmed = darkest(*both);
    view.resize(900, 520);  // it covers what there is by then
    QCoreApplication::processEvents();
    QCOMPARE(veil(view)->size(), veil(view)->parentWidget()->size());
    QVERIFY(!veil(runs)->isVisible());
    reads.end(ProjectReads::What::kComparison);
    QVERIFY(!veil(view)->isVisible() && cancel->isHidden());
    QVERIFY2(darkest(*both) < dimmed - 20, qPrintable(QString::number(dimmed)));
    reads.begin(ProjectReads::What::kRuns);
    QTRY_VERIFY(veil(runs)->isVisible() && !cancelRuns->isHidden());
    QCOMPARE(runs.headerText(), QStringLiteral("reading …"));
    reads.end(ProjectReads::What::kRuns, true);
    QVERIFY(!veil(runs)->isVisible());
    QCOMPARE(runs.headerText(), QStringLiteral("as before: cancelled"));
    reads.begin(ProjectReads::What::kRuns);
    reads.end(ProjectReads::What::kRuns);
    QVERIFY(!runs.headerText().contains(QStringLiteral("cancelled")));
  }

  // A difference is shown on a scale of its own, no difference on that of what was compared.
  void aDifferenceHasAScale() {
    for (const double by : {0.0, 1e-9, 0.9, 1.1}) {
      RunComparison c = madeComparison();
      c.steps.clear();
      for (int step = 0; step < 12; ++step)
        c.steps.push_back({step, 2.3, 2.3 + by * (step % 3), 5.0, 5.0 + by * (step % 2)});
      CompareCurves curves;
      curves.resize(420, 360);
      curves.setComparison(std::make_shared<const RunComparison>(c));
      for (const bool logarithmic : {false, true}) {
        curves.setLogarithmic(logarithmic);
        for (int i = 0; i < 3; ++i) curves.replot();
        for (auto* rect : curves.axisRects())
          for (const auto side : {QCPAxis::atLeft, QCPAxis::atRight}) {
            const QCPAxis* axis = rect->axis(side);
            if (!axis || !axis->visible()) continue;
            const QStringList shown = axis->tickVectorLabels().toList();
            QVERIFY2(shown.size() >= 3 && axis->tickLabels(),
                     qPrintable(QStringLiteral("%1 by %2: %3").arg(axis->label()).arg(by).arg(shown.join(' '))));
            if (axis->label().contains(QStringLiteral("B − A"))) QVERIFY(shown.contains(QStringLiteral("0")));
          }
      }
    }
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
