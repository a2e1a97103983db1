// SPDX-License-Identifier: GPL-3.0-or-later
// Batches as people think of them: tokens beside masks, pictures, gauges, the worst row.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <cmath>

#include "tests/support/qt_classes.h"
#include "tests/views/view_bench.h"
#include "views/batch/batch_view.h"
#include "views/batch/worst_row.h"
#include "views/common/chosen_step.h"
#include "views/common/details.h"
#include "views/common/findings.h"
#include "views/common/padding_cost.h"
#include "views/common/tokens.h"
#include "views/graph/graph_marks.h"
#include "views/graph/graph_model.h"

using namespace stepscope;

class BatchViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void tokensStandBesideTheirMask() {
    TokenTable table;
    QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::QtTest);
    const TensorValues ids(tensorOf<qint64>(0, "int64", {2, 3}, {5, 6, 0, 7, 0, 0})),
        mask(tensorOf<qint64>(1, "int64", {2, 3}, {1, 1, 0, 1, 0, 0}));
    table.set(ids, mask, std::nullopt);
    QCOMPARE(table.rowCount(), 2);
    QCOMPARE(table.columnCount(), 3);
    QCOMPARE(table.index(0, 1).data().toString(), QStringLiteral("6"));
    QCOMPARE(table.index(1, 2).data().toString(), QStringLiteral("(0)"));
    table.set(ids, TensorValues(), 7.0);
    QVERIFY(table.masked(1, 0) && !table.masked(0, 0));
    table.set(TensorValues(tensorOf<qint64>(0, "int64", {1 << 20, 1 << 20}, {5, 6})), mask, std::nullopt);
    QCOMPARE(table.rowCount(), 0);  // not one whole row came
    table.set(TensorValues(), TensorValues(), std::nullopt);
    QCOMPARE(table.rowCount(), 0);
  }

  void imagesBecomePictures() {
    const auto pictures = makePictures(
        TensorValues(tensorOf<float>(2, "float32", {2, 1, 2, 2}, {0, 1, 0.5F, std::nanf(""), -1, 0, 0, 0})), 10);
    QCOMPARE(pictures.size(), std::size_t{2});
    QCOMPARE(qRed(pictures[0].pixel(1, 0)), 255);
    QCOMPARE(qRed(pictures[1].pixel(0, 0)), 0);
    QCOMPARE(pictures[0].pixel(1, 1), Tokens::current().number.rgb());
    QVERIFY(makePictures(TensorValues(tensorOf<float>(2, "float32", {2, 5, 2, 2}, std::vector<float>(40))), 10).empty());
    QVERIFY(makePictures(TensorValues(tensorOf<float>(2, "float32", {1000, 3, 1000, 1000}, {1})), 10).empty());
    const auto rgb =
        makePictures(TensorValues(tensorOf<float>(2, "float32", {1, 3, 2, 2}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0})), 10);
    QCOMPARE(rgb[0].pixel(0, 0), qRgb(255, 0, 0));
    QCOMPARE(rgb[0].pixel(1, 0), qRgb(0, 255, 0));
    QCOMPARE(rgb[0].pixel(0, 1), qRgb(0, 0, 255));
  }

  // 20 ms of two instructions over [2, 3] places of which two hold nothing, beside one over something else.
  void paddingIsANumberAHeatAndAnAdvice() {
    Bench bench;
    bench.store.setModel(model());
    bench.store.setGraph(graph());
    snapshot::Plan p;
    for (int i = 0; i < 3; ++i) {
      auto* in = p.add_instructions();
      in->set_index(i);
      in->set_node(i);
      auto* out = in->add_outputs();
      out->set_value(i < 2 ? 10 + i : 3);
      out->set_buffer(-1);
    }
    bench.store.setPlan(PlanSnapshot::make(std::move(p)));
    const auto step = [&](std::int64_t longest, std::int64_t ns = 10'000'000) {
      auto record = std::make_shared<snapshot::StepRecord>(*stepOf(longest, 4));
      record->mutable_densities(0)->set_longest(longest);
      record->set_step(static_cast<std::int64_t>(bench.store.steps().size()));
      for (int i = 0; i < 3; ++i) {
        auto* span = record->add_spans();
        span->set_instruction(i);
        span->set_node(i);
        span->set_end_ns(ns);
      }
      bench.store.addStep(record);
    };
    for (int i = 0; i < 3; ++i) step(2);
    step(2, 500'000'000);  // somebody else had the core; what a step takes as a rule is told
    const PaddingCost cost = PaddingCost::of(bench.store);
    QCOMPARE(cost.inputs.size(), std::size_t{1});
    QCOMPARE(cost.stepNs, 30'000'000);
    QCOMPARE(cost.inputs[0].value, 0);
    QVERIFY(std::abs(cost.inputs[0].ns - 20'000'000 / 3) <= 1);
    QVERIFY(std::abs(cost.inputs[0].cutNs - 20'000'000 / 3) <= 1);
    QCOMPARE(cost.instructions[2], -1.0);
    QVERIFY(std::abs(cost.instructions[0] - 10'000'000.0 / 3) < 1);

    BatchView view(bench.context());
    view.resize(900, 500);
    view.show();
    view.openPage(BatchView::kDensity);
    const auto text = [&] {
      QString all;
      for (const auto* page : view.findChildren<Details*>()) all += page->toPlainText().replace(QChar(0xa0), ' ');
      return all;
    };
    QTRY_VERIFY2(text().contains(QStringLiteral("at least 6.67 ms of a step")), qPrintable(text()));
    QVERIFY2(text().contains(QStringLiteral("longest row has 2 of 3")), qPrintable(text()));
    step(3);
    QTRY_VERIFY2(text().contains(QStringLiteral("rows of like length")), qPrintable(text()));

    // The same as heat of the graph: the share of a node beside the largest.
    const std::atomic<bool> go = false;
    const auto layout = GraphModel::make(bench.store.graph(), go);
    const GraphMarks marks = GraphMarks::make(PlanMarks::make(layout, bench.store.plan()), bench.store, HeatKind::kPadding);
    QCOMPARE(marks.nodes[static_cast<std::size_t>(layout->ofNodeId(0))].heat, 1.0F);
    QCOMPARE(marks.nodes[static_cast<std::size_t>(layout->ofNodeId(2))].heat, -1.0F);
    // Without padding there is nothing to tell.
    bench.store.addStep(stepOf(9, 6));
    QVERIFY(PaddingCost::of(bench.store).inputs.empty());
    QTRY_VERIFY(!text().contains(QStringLiteral("at least")));
  }

  void theWorstRowIsTheLargestAndNanBeatsIt() {
    snapshot::RowLosses losses;
    for (const double x : {1.0, 9.0, 3.0, 2.0}) losses.add_values(x);
    auto worst = worstRow(losses, 2);
    QVERIFY(worst.has_value());
    QCOMPARE(worst->row, 1);
    QCOMPARE(worst->sample, 0);
    QCOMPARE(worst->place, 1);
    QCOMPARE(worst->mean, 3.75);
    for (const bool ignored : {false, true, false, false}) losses.add_ignored(ignored);
    QCOMPARE(worstRow(losses, 2)->row, 2);
    QCOMPARE(worstRow(losses, 3)->sample, -1);
    losses.set_values(3, std::nan(""));
    QCOMPARE(worstRow(losses, 2)->row, 3);
    QCOMPARE(worstRow(losses, 2)->notFinite, 1);
    for (int i = 0; i < 4; ++i) losses.set_ignored(i, true);
    QVERIFY(!worstRow(losses, 2).has_value());
    QCOMPARE(firstBadSample(TensorValues(tensorOf<float>(2, "float32", {2, 2}, {0, 1, 2, std::nanf("")}))), 1);
    QCOMPARE(firstBadSample(TensorValues(tensorOf<float>(2, "float32", {2, 2}, {0, 1, 2, 3}))), -1);
  }

  void gaugesFollowTheSteps() {
    Bench b;
    QVERIFY(batchGauges(b.store, 10).empty());
    b.store.setGraph(graph());
    for (int i = 0; i < 5; ++i) b.store.addStep(stepOf(i, i + 1));
    const auto gauges = batchGauges(b.store, 3);
    QCOMPARE(gauges.size(), std::size_t{4});  // samples, tokens, density, lengths
    QCOMPARE(gauges[2].share, 5.0 / 6);
    QCOMPARE(gauges[2].history.size(), std::size_t{3});
    QCOMPARE(gauges[2].history.front(), 3.0 / 6);
    QCOMPARE(gauges[2].value, 0);
    QVERIFY(gauges[2].tip.contains(QStringLiteral("padding where 'mask' is 0")));
  }

  void theBatchViewShowsWhatCame() {
    Bench b;
    BatchView view(b.context());
    view.resize(1000, 260);
    view.show();
    QSignalSpy fetched(&b.wishes, &Wishes::fetchTensor);
    b.store.setModel(model());
    b.store.setGraph(graph());
    QCOMPARE(fetched.size(), 4);  // statistics of each input
    b.store.addStep(stepOf(4, 3));
    view.openPage(BatchView::kContents);
    QVERIFY(fetched.size() > 4);
    b.store.addTensor(tensorOf<float>(2, "float32", {2, 1, 2, 2}, std::vector<float>(8, 0.5F)));
    b.store.addTensor(tensorOf<qint64>(3, "int64", {2}, {7, 8}));
    QTest::qWait(1);
    QCOMPARE(view.findChild<PictureGrid*>()->pictures(), 2);
    b.selection.select(Selection::ofValue(0));
    b.store.addTensor(tensorOf<qint64>(0, "int64", {2, 3}, {5, 6, 0, 7, 0, 0}));
    b.store.addTensor(tensorOf<qint64>(1, "int64", {2, 3}, {1, 1, 0, 1, 0, 0}));
    QTest::qWait(1);
    const auto* tokens = child<QTableView>(view, "batch_tokens");
    QCOMPARE(tokens->model()->index(0, 2).data().toString(), QStringLiteral("(0)"));
    QSignalSpy asked(&b.wishes, &Wishes::rowLosses);
    view.openPage(BatchView::kWorst);
    QCOMPARE(asked.size(), 1);
    auto losses = std::make_shared<snapshot::RowLosses>();
    for (const double x : {1.0, 9.0, 3.0, 2.0}) losses->add_values(x);
    b.store.findings().setRowLosses(losses);
    const auto says = [&view](const QString& what) {
      for (const auto* page : view.findChildren<Details*>()) {
        if (page->isVisible() && page->toPlainText().contains(what)) return true;
      }
      return false;
    };
    QVERIFY(says(QStringLiteral("row 1 of 4: sample 0, place 1")));
    auto never = std::make_shared<snapshot::RowLosses>();
    never->set_instruction(-1);
    never->set_unavailable("the loss comes from Add 'x', which has no value per row");
    b.store.setGraph(graph());
    b.store.findings().setRowLosses(never);
    QVERIFY(says(QStringLiteral("no value per row")));
  }

  void aRecordedBatchIsShownWithoutAWorker() {
    Bench b;
    BatchView view(b.context());
    view.resize(1000, 260);
    view.show();
    QSignalSpy fetched(&b.wishes, &Wishes::fetchTensor);
    b.store.setReadOnly(true);
    b.store.setModel(model());
    b.store.setGraph(graph());
    for (int i = 0; i < 4; ++i) {
      auto step = std::make_shared<snapshot::StepRecord>(*stepOf(i, i + 1));
      if (i % 2 == 0) {
        auto* ids = step->add_inputs();
        *ids = *tensorOf<qint64>(0, "int64", {2, 3}, {5 + i, 6, 0, 7, 0, 0});
        ids->set_name("ids");
        ids->mutable_statistics()->set_count(6);
        ids->mutable_statistics()->set_max(7 + i);
        for (const double x : {1.0, 3.0 + i, 2.0}) step->mutable_row_losses()->add_values(x);
      }
      b.store.addStep(std::move(step));
    }
    QTest::qWait(1);
    const auto* table = child<QTableView>(view, "batch_table");
    QTRY_COMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("9"));  // of step 2, the newest that recorded
    auto* steps = view.findChild<QComboBox*>(QStringLiteral("batch_step"));
    QCOMPARE(steps->count(), 3);  // the newest one, whichever it is, and two
    ChosenStep& chosen = ChosenStep::of(b.store);
    QObject::connect(&b.wishes, &Wishes::showStep, &chosen, [&chosen](qint64 step) { chosen.choose(step); });
    b.selection.select(Selection::ofValue(0));
    view.openPage(BatchView::kContents);
    const auto* tokens = child<QTableView>(view, "batch_tokens");
    QCOMPARE(tokens->model()->index(0, 0).data().toString(), QStringLiteral("7"));
    emit steps->activated(2);
    QCOMPARE(chosen.step(), 0);
    QTRY_COMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("7"));
    QCOMPARE(steps->currentIndex(), 2);
    QCOMPARE(tokens->model()->index(0, 0).data().toString(), QStringLiteral("5"));
    view.openPage(BatchView::kWorst);
    QVERIFY(view.findChild<WorstPage*>()->toPlainText().contains(QStringLiteral("row 1 of 3")));
    auto gauges = batchGauges(b.store, 10);
    QCOMPARE(gauges.back().title, QStringLiteral("worst row"));
    QCOMPARE(gauges.back().history, (std::vector<double>{3, 5}));
    QVERIFY2(gauges.back().text.startsWith(QStringLiteral("5,")), qPrintable(gauges.back().text));
    // Beside the numbers of the newest step, which recorded none, it says whose it is.
    QVERIFY2(gauges.back().text.endsWith(QStringLiteral("of step 2")), qPrintable(gauges.back().text));
    gauges = batchGauges(b.store, 10, b.store.steps()[0].get());
    QVERIFY2(gauges.back().text.startsWith(QStringLiteral("3,")), qPrintable(gauges.back().text));
    QVERIFY2(!gauges.back().text.contains(QStringLiteral("of step")), qPrintable(gauges.back().text));
    QCOMPARE(fetched.size(), 0);  // there is nobody to ask
    // An input of which nothing was kept says so.
    b.selection.select(Selection::ofValue(3));
    view.openPage(BatchView::kContents);
    QVERIFY(
        view.findChild<ContentsPage*>()->findChild<Details*>()->toPlainText().contains(QStringLiteral("nothing of label")));
    // Of a step that another view chose, and that recorded no batch, nothing of another step stands there.
    QVERIFY(chosen.choose(3));
    b.selection.select(Selection::ofValue(0));
    const auto said = [&] { return view.findChild<ContentsPage*>()->findChild<Details*>()->toPlainText(); };
    QTRY_VERIFY2(said().contains(QStringLiteral("Step 3 is read")), qPrintable(said()));
    auto read = std::make_shared<snapshot::StepRecord>(*stepOf(3, 4));
    read->clear_spans();
    chosen.set(3, read, {});
    QTRY_VERIFY2(said().contains(QStringLiteral("Step 3 did not record its batch")), qPrintable(said()));
    QTRY_COMPARE(table->model()->index(0, 4).data().toString(), QString());
    QCOMPARE(steps->currentText(), QStringLiteral("Step 3"));
    QCOMPARE(view.headerText(), QStringLiteral("step 3"));
    view.openPage(BatchView::kDensity);  // its densities were
    const auto& ofStep = view.findChild<GaugeList*>()->gauges();
    QVERIFY(std::any_of(ofStep.begin(), ofStep.end(), [](const Gauge& g) { return std::abs(g.share - 4.0 / 6) < 1e-9; }));
    // One that the project has, and the view's list has not.
    QVERIFY(chosen.choose(1));
    read = std::make_shared<snapshot::StepRecord>(*b.store.steps()[0]);
    read->set_step(1);
    read->mutable_inputs(0)->mutable_statistics()->set_max(70);
    chosen.set(1, read, {});
    QTRY_COMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("70"));
    chosen.choose(-1);
    QTRY_COMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("9"));
    QCOMPARE(steps->currentIndex(), 0);
  }
};

SS_QT_CLASS(QApplication, BatchViewTest)
#include "tst_batch_view.moc"
