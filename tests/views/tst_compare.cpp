// SPDX-License-Identifier: GPL-3.0-or-later
// Two runs beside each other, and the start-ups of a project, as tables: without a file and without a worker.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QMenu>
#include <QSignalSpy>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <limits>

#include "views/common/comparison_cells.h"
#include "views/common/format.h"
#include "views/common/pass_stages.h"
#include "views/common/startup_history.h"
#include "views/common/tokens.h"
#include "views/compare/compare_curves.h"
#include "views/compare/compare_rows.h"
#include "views/compare/compare_view.h"
#include "views/compare/divergence_rows.h"
#include "views/compare/numbers_page.h"
#include "views/compare/settings_page.h"
#include "views/compare/times_page.h"
#include "views/compare/tolerance_bar.h"
#include "views/runs/runs_view.h"
#include "views/startup_table/startup_table_view.h"

using namespace stepscope;

namespace {

RunEntry entry(std::int64_t id, std::int64_t steps) {
  RunEntry e;
  e.id = id;
  e.name = QStringLiteral("digits");
  e.status = QStringLiteral("finished");
  e.steps = steps;
  return e;
}

RunComparison madeComparison() {
  RunComparison c;
  c.request = {1, 2, 1e-5, 1e-8, {}};
  c.a.run = entry(1, 3);
  c.b.run = entry(2, 3);
  c.a.step = {2, 1'000'000, 1'100'000, 900'000, 1'100'000};
  c.b.step = {2, 500'000, 600'000, 500'000, 600'000};
  c.options = {{QStringLiteral("lr"), QStringLiteral("0.1"), QStringLiteral("0.2")},
               {QStringLiteral("a\u202Eb"), {}, QStringLiteral("on")}};
  c.both = 3;
  c.divergences = {{1, QStringLiteral("loss"), 2.5, 2.25, QStringLiteral("forward"), {}},
                   {1, QStringLiteral("norm"), 1.0, std::numeric_limits<double>::quiet_NaN(), QStringLiteral("backward"),
                    QStringLiteral("h/weight_grad")},
                   {2, QStringLiteral("loss"), 2.0, {}, QStringLiteral("forward"), {}}};
  c.outside = 3;
  c.first = c.unequal = c.divergences.front();
  c.steps = {{0, 3.0, 3.0, 1.0, 1.0}, {1, 2.5, 2.25, {}, {}}, {2, 2.0, {}, {}, {}}};
  c.ops = {{QStringLiteral("MatMul"),
            QStringLiteral("forward"),
            4'000.0,
            2'000.0,
            {10, 100, 120, 90, 130},
            {10, 50, 60, 40, 70},
            5,
            5},
           {QStringLiteral("Add"), QStringLiteral("backward"), 100.0, {}, {3, 30, 40, 30, 40}, {}, 1, 0}};
  c.stepPhases = {{QStringLiteral("forward"),
                   {},
                   4'000.0,
                   2'000.0,
                   {3, 4'000, 4'100, 3'900, 4'100},
                   {3, 2'000, 2'100, 1'900, 2'100},
                   3,
                   3}};
  c.memory = {{QStringLiteral("planned"), 2048, 1024}, {QStringLiteral("arena"), {}, 512}};
  return c;
}

GraphPtr graph() {
  snapshot::Graph g;
  for (int i = 0; i < 2; ++i) {
    auto* v = g.add_values();
    v->set_id(10 + i);
    v->set_name(i == 0 ? "loss_value" : "h/weight_grad");
    auto* n = g.add_nodes();
    n->set_id(i);
    n->set_op(i == 0 ? "MatMul" : "Add");
    n->set_phase(i == 0 ? snapshot::FORWARD : snapshot::BACKWARD);
    n->add_outputs(10 + i);
  }
  g.set_loss(10);
  return GraphSnapshot::make(std::move(g));
}

PlanPtr plan() {
  snapshot::Plan p;
  for (int i = 0; i < 2; ++i) {
    auto* in = p.add_instructions();
    in->set_index(i);
    in->set_node(i);
    in->set_op(i == 0 ? "MatMul" : "Add");
    in->set_phase(i == 0 ? snapshot::FORWARD : snapshot::BACKWARD);
  }
  return PlanSnapshot::make(std::move(p));
}

QStringList rolesOf(const std::vector<TableRow>& rows) {
  QStringList roles;
  for (const TableRow& row : rows)
    for (const TableCell& cell : row.cells) roles << cell.role;
  return roles;
}

struct Desk {
  SnapshotStore store;
  SelectionModel selection;
  Wishes wishes;
  ViewContext context{store, selection, wishes};
};

std::vector<snapshot::PhaseSpan> phases(std::int64_t ns) {
  std::vector<snapshot::PhaseSpan> out(4);
  const char* names[] = {"load", "pre-grad passes", "fold", "fold"};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].set_name(names[i]);
    out[i].set_depth(i < 2 ? 0 : 1);
    out[i].set_parent(i < 2 ? -1 : 1);
    out[i].set_ns(ns * static_cast<std::int64_t>(i + 1));
  }
  return out;
}

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

const QAbstractItemModel* tableOf(View& view) {
  view.resize(900, 400);
  view.show();
  QTest::qWait(1);  // rows are made in a later turn
  return view.findChild<QTableView*>()->model();
}

QString cell(const QAbstractItemModel* model, int row, int column) { return model->index(row, column).data().toString(); }

}  // namespace

class CompareTest : public QObject {
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
      model.setColumns(columns, timeRows(c, which, plan().get()));
      for (const TableColumn& column : columns)
        QVERIFY2(!column.tip.isEmpty() || column.title.isEmpty(), qPrintable(column.title));
    }
    model.setColumns(divergenceColumns(), divergenceRows(c, graph().get()));
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

  // A pass leads to the places where it almost applied and to the nodes it made.
  void aPassLeadsToItsMatchesAndNearMisses() {
    struct Phases : StartupTableView {
      using StartupTableView::fillMenu;
      using StartupTableView::StartupTableView;
    };
    Desk desk;
    snapshot::Graph g = graph()->graph();
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
    c.first = c.unequal = {};
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

  // A scale where there is something to measure by it: no numbers without a pair of losses, only 0 where all are equal.
  void differencesOfNothingHaveNoScale() {
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
    QCOMPARE(labels(QCPAxis::atLeft), QStringList{QStringLiteral("0")});
    QCOMPARE(labels(QCPAxis::atRight), QStringList{QStringLiteral("0")});
    c.steps = {{0, 3.0, {}, {}, {}}, {1, {}, 2.5, {}, {}}};
    QCOMPARE(labels(QCPAxis::atLeft), QStringList());
    QCOMPARE(labels(QCPAxis::atRight), QStringList());
  }

  void timesStandWithTheirStatistics() {
    const auto rows = timeRows(madeComparison(), Times::kOperators, plan().get());
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

  void aDivergenceSelectsItsValueInEveryView() {
    Desk desk;
    desk.store.setGraph(graph());
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
    for (int c = 0; c < 9; ++c) row << cell(model, 0, c);
    QCOMPARE(row, (QStringList{"load", "50 ns", "33 %", "−75 %", "200 ns", "200 ns", "3", "100 ns", "300 ns"}));
    QVERIFY(view.findChild<QWidget*>(QStringLiteral("startup_history"))->isVisible());
  }
};

QTEST_MAIN(CompareTest)
#include "tst_compare.moc"
