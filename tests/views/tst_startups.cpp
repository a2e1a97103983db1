// SPDX-License-Identifier: GPL-3.0-or-later
// The phases of a build as a table, and beside those of earlier start-ups.
#include <QAbstractItemModelTester>
#include <QMenu>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include "tests/support/qt_classes.h"
#include "tests/views/two_runs.h"
#include "views/common/pass_stages.h"
#include "views/common/startup_history.h"
#include "views/common/tokens.h"
#include "views/startup_table/history_plot.h"
#include "views/startup_table/startup_table_view.h"

using namespace stepscope;

namespace {

// Start-ups of runs 1, 2, 3 …; the last one is shown. Every phase of `phases(times[i])`.
StartupHistory historyOf(const std::vector<std::int64_t>& times) {
  StartupHistory h;
  for (std::size_t i = 0; i < times.size(); ++i) {
    h.startups.push_back({static_cast<std::int64_t>(i + 1), 0, 0, QStringLiteral("digits"), QStringLiteral("cpu"),
                          i < 2 ? QStringLiteral("0.1") : QStringLiteral("0.2")});
    const auto spans = phases(times[i]);
    const QStringList paths = phasePaths(spans);
    for (qsizetype p = 0; p < paths.size(); ++p) {
      if (i == 0) h.phases.push_back({paths[p], {}});
      h.phases[static_cast<std::size_t>(p)].points.push_back(
          {static_cast<int>(i), spans[static_cast<std::size_t>(p)].ns(), false});
    }
  }
  return h;
}

}  // namespace

class StartupsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  // A pass leads to the places where it almost applied and to the nodes it made.
  void aPassLeadsToItsMatchesAndNearMisses() {
    struct Phases : StartupTableView {
      using StartupTableView::fillMenu;
      using StartupTableView::StartupTableView;
    };
    Desk desk;
    snapshot::Graph g = comparedGraph()->graph();
    g.mutable_nodes(1)->mutable_provenance()->set_pass("fold");
    desk.store.setGraph(GraphSnapshot::make(std::move(g)));
    auto spans = phases(10);
    snapshot::PassReport* pass = spans[2].mutable_pass();
    pass->set_name("fold");
    for (const int node : {0, 77}) {
      auto* miss = pass->add_near_misses();
      miss->set_node(node);
      miss->set_condition("its input is read twice");
    }
    desk.store.setPhases(std::move(spans));
    Phases view(desk.context);
    tableOf(view);
    QMenu of, none;
    view.fillMenu(none, 0);
    QVERIFY(none.isEmpty());
    view.fillMenu(of, 2);
    auto* misses = of.findChild<QMenu*>(QStringLiteral("pass_near_misses"));
    auto* matches = of.findChild<QMenu*>(QStringLiteral("pass_matches"));
    QVERIFY(misses && matches);
    QCOMPARE(misses->actions().size(), 2);
    QVERIFY(misses->actions()[0]->text().contains(QStringLiteral("read twice")));
    QVERIFY2(!misses->actions()[1]->isEnabled(), "a node that is gone, and no graph that shows it");
    QVERIFY(!of.findChild<QAction*>(QStringLiteral("pass_changes")));
    misses->actions()[0]->trigger();
    QCOMPARE(desk.selection.selection().node, 0);
    matches->actions()[0]->trigger();
    QCOMPARE(desk.selection.selection().node, 1);
    // Where the graphs around the pass are kept, they show what is gone and what the pass changed.
    PassStages& stops = PassStages::of(desk.store);
    stops.set({"load", "pre-grad passes/fold", "pre-grad passes"});
    desk.store.setStages({"load", "pre-grad passes"});
    QCOMPARE(stops.around(2), (PassStages::Range{"load", "pre-grad passes/fold"}));
    QCOMPARE(stops.around(3), (PassStages::Range{"pre-grad passes/fold", "pre-grad passes/fold"}));
    QCOMPARE(stops.around(1), (PassStages::Range{"load", "pre-grad passes"}));
    QSignalSpy shown(&desk.wishes, &Wishes::showStop), opened(&desk.wishes, &Wishes::command);
    QMenu again;
    view.fillMenu(again, 2);
    again.findChild<QMenu*>(QStringLiteral("pass_near_misses"))->actions()[1]->trigger();
    QCOMPARE(shown.takeFirst(), (QVariantList{"load", "", 77}));
    again.findChild<QAction*>(QStringLiteral("pass_changes"))->trigger();
    QCOMPARE(shown.takeFirst(), (QVariantList{"pre-grad passes/fold", "load", -1}));
    QCOMPARE(opened.size(), 2);
    QCOMPARE(opened[0][0].toString(), QStringLiteral("view_graph"));
    // Another build has none of them.
    desk.store.setStages({"load"});
    QCOMPARE(stops.stops(), QStringList{"load"});
  }

  // The numbers of a pass stand before what a narrow panel leaves out of sight; a click or Return lists what they count.
  void aClickOnANumberListsItsPlaces() {
    Desk desk;
    snapshot::Graph g = comparedGraph()->graph();
    g.mutable_nodes(1)->mutable_provenance()->set_pass("fold");
    desk.store.setGraph(GraphSnapshot::make(std::move(g)));
    auto spans = phases(10);
    snapshot::PassReport* pass = spans[2].mutable_pass();
    pass->set_name("fold");
    pass->set_matches(1);
    for (const int node : {0, 77}) {
      auto* miss = pass->add_near_misses();
      miss->set_node(node);
      miss->set_condition("its input is read twice");
    }
    desk.store.setPhases(spans);
    PassStages::of(desk.store).set({"load", "pre-grad passes/fold", "pre-grad passes"});
    desk.store.setStages({"load", "pre-grad passes"});
    StartupTableView view(desk.context);
    tableOf(view);
    auto* table = view.findChild<QTableView*>(QStringLiteral("startup_table_table"));
    auto* places = view.findChild<QTableView*>(QStringLiteral("pass_places"));
    QVERIFY(table && places && !places->isVisible());
    QStringList titles;
    for (int c = 0; c < table->model()->columnCount(); ++c)
      titles << table->model()->headerData(c, Qt::Horizontal).toString();
    const int matches = int(titles.indexOf("Matches")), misses = int(titles.indexOf("Near misses"));
    QVERIFY2(misses < titles.indexOf("Resident") && matches < titles.indexOf("Items"), qPrintable(titles.join(' ')));
    const auto click = [&](QTableView* in, int row, int column) {
      QTest::mouseClick(in->viewport(), Qt::LeftButton, {}, in->visualRect(in->model()->index(row, column)).center());
    };
    click(table, 0, matches);  // a phase has none
    QVERIFY(!places->isVisible());
    click(table, 2, misses);
    QVERIFY(places->isVisible());
    QCOMPARE(places->model()->rowCount(), 4);
    const auto line = [&](int row) {
      QStringList cells;
      for (int c = 0; c < 3; ++c) cells << cell(places->model(), row, c);
      return cells;
    };
    QCOMPARE(line(1)[0], QStringLiteral("match"));
    QCOMPARE(line(2)[0], QStringLiteral("near miss"));
    QCOMPARE(line(3), (QStringList{"near miss", "node 77", "its input is read twice"}));
    QCOMPARE(places->currentIndex().row(), 2);
    // Each is a link: what the pass changed, a node of the graph that runs, one that only an earlier graph has.
    QSignalSpy shown(&desk.wishes, &Wishes::showStop);
    click(places, 0, 1);
    QCOMPARE(shown.takeFirst(), (QVariantList{"pre-grad passes/fold", "load", -1}));
    click(places, 1, 1);
    QCOMPARE(shown.takeFirst(), (QVariantList{"pre-grad passes", "", 1}));
    click(places, 3, 1);
    QCOMPARE(shown.takeFirst(), (QVariantList{"load", "", 77}));
    // It stays with its pass while another place is selected, and with a phase that has none it says so.
    desk.selection.select(Selection::ofNode(0));
    QVERIFY(table->selectionModel()->isRowSelected(2, {}));
    QCOMPARE(places->model()->rowCount(), 4);
    desk.store.setPhases(spans);  // built again
    QTest::qWait(1);
    QCOMPARE(places->model()->rowCount(), 4);
    click(table, 0, 0);
    QCOMPARE(places->model()->rowCount(), 0);
    // The same by keys.
    QTest::mouseClick(view.findChild<QWidget*>(QStringLiteral("pass_places_close")), Qt::LeftButton);
    QVERIFY(!places->isVisible());
    table->setCurrentIndex(table->model()->index(2, matches));
    QTest::keyClick(table, Qt::Key_Return);
    QVERIFY(places->isVisible());
    QCOMPARE(places->currentIndex().row(), 1);
    QTest::keyClick(places, Qt::Key_Return);
    QCOMPARE(shown.size(), 1);
    QCOMPARE(shown.takeFirst(), (QVariantList{"pre-grad passes", "", 1}));
  }

  void aPhaseStandsBesideItsEarlierTimes() {
    const EarlierStartups earlier(historyOf({100, 300, 200, 50}));
    const EarlierTimes load = earlier.of(QStringLiteral("load"));
    QCOMPARE(load.n, 3);
    QCOMPARE(load.previous, 200);
    QCOMPARE(load.median, 200);
    QCOMPARE(load.min, 100);
    QCOMPARE(load.max, 300);
    // The whole build is the sum of its phases, children not counted twice.
    QCOMPARE(earlier.of({}).max, 300 + 600);
    QCOMPARE(earlier.of(QStringLiteral("pre-grad passes/fold #2")).previous, 800);
    QCOMPARE(earlier.of(QStringLiteral("plan")).n, 0);
    QCOMPARE(earlier.points(QStringLiteral("load")).size(), std::size_t{4});
    QCOMPARE(EarlierStartups({}).of({}).n, 0);
    // A failed phase says nothing about its time.
    StartupHistory failed = historyOf({100, 300, 50});
    failed.phases[0].points[1].failed = true;
    QCOMPARE(EarlierStartups(failed).of(QStringLiteral("load")).n, 1);
  }

  void onlyAChangeOutsideOfTheNoiseIsNews() {
    const auto news = [](std::vector<std::int64_t> times) {
      const std::int64_t now = times.back();
      return EarlierStartups(historyOf(times)).of(QStringLiteral("load")).news(now);
    };
    constexpr std::int64_t kMs = 1'000'000;
    QCOMPARE(news({10 * kMs, 11 * kMs, 12 * kMs, 5 * kMs}), -1);
    QCOMPARE(news({10 * kMs, 11 * kMs, 12 * kMs, 13 * kMs}), 1);
    QCOMPARE(news({10 * kMs, 11 * kMs, 12 * kMs, 12 * kMs}), 0);      // as long as one of them
    QCOMPARE(news({10 * kMs, 11 * kMs, 5 * kMs}), 0);                 // two say nothing about how times scatter
    QCOMPARE(news({10'000, 11'000, 12'000, 2'000}), 0);               // microseconds
    QCOMPARE(news({100 * kMs, 100 * kMs, 101 * kMs, 102 * kMs}), 0);  // 2 %
    // The table colours no more than that.
    Desk desk;
    StartupTableView view(desk.context);
    const auto coloured = [&](std::int64_t unit) {
      desk.store.setPhases(phases(2 * unit));
      desk.store.project().setStartupHistory(historyOf({10 * unit, 11 * unit, 12 * unit, 2 * unit}));
      return tableOf(view)->index(0, 3).data(Qt::ForegroundRole).isValid();
    };
    QVERIFY(!coloured(1'000));
    QVERIFY(coloured(kMs));
  }

  void aRebuildStandsBesideTheBuildsBefore() {
    // The last one changed options: nothing was read, and its whole is no whole of the others.
    StartupHistory h = historyOf({100, 300, 50});
    std::erase_if(h.phases[0].points, [](const auto& p) { return p.startup == 2; });
    const EarlierStartups earlier(h);
    QVERIFY(earlier.any());
    QCOMPARE(earlier.of({}).n, 0);
    QCOMPARE(earlier.points({}).size(), std::size_t{1});
    QCOMPARE(earlier.of(QStringLiteral("pre-grad passes")).n, 2);
  }

  // The labels of the first and the last start-up stand beside each other, or the first one is left out.
  void labelsOfTheHistoryDoNotPrintOverEachOther() {
    HistoryPlot plot;
    std::vector<StartupEntry> startups(6);
    std::vector<PhaseHistory::Point> points(6);
    for (int i = 0; i < 6; ++i) {
      startups[static_cast<std::size_t>(i)].run = 3;
      startups[static_cast<std::size_t>(i)].build = i + 1;
      points[static_cast<std::size_t>(i)].startup = i;
      points[static_cast<std::size_t>(i)].ns = 1'000'000;
    }
    plot.show(QStringLiteral("load"), startups, points);
    const Metrics m = Metrics::current();
    const int label = QFontMetrics(smallFont()).horizontalAdvance(QStringLiteral("run 3, rebuild 6"));
    // From the first ink to the last, below the axis.
    const auto inked = [&](int width) {
      plot.resize(width, 9 * m.unit);
      const QImage image = plot.grab().toImage();
      int first = image.width(), last = -1;
      for (int y = image.height() - qRound(1.35 * m.unit); y < image.height(); ++y)  // below the 0 of the axis
        for (int x = 0; x < image.width(); ++x)
          if (image.pixelColor(x, y) != Tokens::current().panel) first = std::min(first, x), last = std::max(last, x);
      return last - first + 1;
    };
    const int narrow = inked(label + 7 * m.unit);
    QVERIFY2(narrow > label / 2 && narrow <= label + 8, qPrintable(QStringLiteral("%1 beside %2").arg(narrow).arg(label)));
    const int wide = inked(4 * label);
    QVERIFY2(wide > 2 * label, qPrintable(QString::number(wide)));
  }

  void theStartUpTableHasTheHistoryOnceThereIsOne() {
    Desk desk;
    StartupTableView view(desk.context);
    desk.store.setPhases(phases(50));
    desk.store.project().setStartupHistory(historyOf({50}));
    const auto* model = tableOf(view);
    QAbstractItemModelTester tester(const_cast<QAbstractItemModel*>(model),
                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
    const int alone = model->columnCount();
    QVERIFY(!view.findChild<QWidget*>(QStringLiteral("startup_history"))->isVisible());
    desk.store.project().setStartupHistory(historyOf({100, 300, 200, 50}));
    QTest::qWait(1);
    QCOMPARE(model->columnCount(), alone + 6);
    QCOMPARE(model->headerData(3, Qt::Horizontal).toString(), QStringLiteral("Change"));
    QStringList row;
    for (int c = 0; c < 12; ++c) row << cell(model, 0, c);
    QCOMPARE(row, (QStringList{"load", "50 ns", "33 %", "−75 %", "", "", "", "200 ns", "200 ns", "3", "100 ns", "300 ns"}));
    QVERIFY(view.findChild<QWidget*>(QStringLiteral("startup_history"))->isVisible());
  }
};

SS_QT_CLASS(QApplication, StartupsTest)
#include "tst_startups.moc"
