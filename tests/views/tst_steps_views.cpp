// SPDX-License-Identifier: GPL-3.0-or-later
// What follows the steps: sums over them, values from one to the next.
#include <qcustomplot.h>

#include <QAbstractItemModelTester>
#include <QElapsedTimer>
#include <QTest>
#include <QToolButton>
#include <algorithm>
#include <cmath>

#include "engine/snapshot/gradient_norm.h"
#include "tests/support/qt_classes.h"
#include "tests/views/view_bench.h"
#include "views/common/counted_steps.h"
#include "views/common/step_series.h"
#include "views/common/tokens.h"
#include "views/training/training_view.h"
#include "views/value_history/value_history_view.h"

using namespace stepscope;

class StepsViewsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void sumsLeaveWarmUpOut() {
    std::vector<StepPtr> steps;
    for (int i = 0; i < 5; ++i) {
      auto s = std::make_shared<snapshot::StepRecord>();
      s->set_step(i);
      s->set_begin_ns(i * 100);
      s->set_ns(90);
      s->set_warm_up(i == 0 || i == 3);
      if (i != 4) s->add_spans()->set_begin_ns(i * 100);
      steps.push_back(std::move(s));
    }
    const auto numbers = [](const CountedSteps& counted) {
      std::vector<std::int64_t> all;
      for (const StepPtr& s : counted.steps) all.push_back(s->step());
      return all;
    };
    QCOMPARE(numbers(countedSteps(steps, 10, 0, 0)), (std::vector<std::int64_t>{1, 2}));
    QCOMPARE(countedSteps(steps, 10, 0, 0).warmUp, 2);
    QCOMPARE(numbers(countedSteps(steps, 1, 0, 0)), (std::vector<std::int64_t>{3}));  // nothing else is there
    QCOMPARE(countedSteps(steps, 1, 0, 0).warmUp, 0);
    QCOMPARE(numbers(countedSteps(steps, 10, 150, 350)), (std::vector<std::int64_t>{1, 2}));
    QCOMPARE(numbers(countedSteps(steps, 10, 0, 50)), (std::vector<std::int64_t>{0}));
    QVERIFY(countedSteps({}, 10, 0, 0).steps.empty());
    // Steps of another plan have other instructions under the same numbers: step 1 alone is of this one.
    snapshot::Plan p;
    p.add_instructions()->set_node(5);
    SnapshotStore store;
    store.setPlan(PlanSnapshot::make(std::move(p)));
    auto own = std::make_shared<snapshot::StepRecord>(*steps[1]);
    own->mutable_spans(0)->set_node(5);
    steps[1] = own;
    const CountedSteps counted = countedSteps(steps, 10, 0, 0, &StepPlans::of(store));
    QCOMPARE(numbers(counted), (std::vector<std::int64_t>{1}));
    QCOMPARE(counted.others, 3);
    QVERIFY2(counted.leftOut().contains(QStringLiteral("3 of another plan")), qPrintable(counted.leftOut()));
  }

  // One step is one number on the axis of steps, and none below 0.
  void oneStepIsOneNumberOnTheAxis() {
    Bench b;
    TrainingView view(b.context());
    view.resize(500, 400);
    view.show();
    auto s = std::make_shared<snapshot::StepRecord>();
    s->set_loss(2.5);
    s->set_has_loss(true);
    b.store.addStep(std::move(s));
    auto* plot = view.findChild<QCustomPlot*>();
    QTRY_COMPARE(plot->graph(0)->dataCount(), 1);
    plot->replot();
    QCOMPARE(QStringList(plot->axisRect(1)->axis(QCPAxis::atBottom)->tickVectorLabels().toList()),
             QStringList{QStringLiteral("0")});
  }

  // Smooth draws the mean of as many steps before as after each; what is not finite does not count.
  void theSmoothCurveIsTheMeanAroundEachStep() {
    Bench b;
    TrainingView view(b.context());
    view.resize(500, 400);
    view.show();
    for (int i = 0; i < 20; ++i) {
      auto s = std::make_shared<snapshot::StepRecord>();
      s->set_step(i);
      s->set_loss(i == 12 ? std::nan("") : i * i);
      s->set_has_loss(true);
      b.store.addStep(std::move(s));
    }
    auto* plot = view.findChild<QCustomPlot*>();
    QTRY_COMPARE(plot->graph(0)->dataCount(), 20);
    QToolButton* smooth = nullptr;
    for (auto* button : view.findChildren<QToolButton*>())
      if (button->text() == u"Smooth") smooth = button;
    QVERIFY(smooth);
    smooth->setChecked(true);
    QCPGraph* mean = nullptr;
    for (int i = 1; i < plot->graphCount(); ++i)
      if (plot->graph(i)->valueAxis() == plot->graph(0)->valueAxis()) mean = plot->graph(i);
    QVERIFY(mean && mean->visible());
    QCOMPARE(mean->dataCount(), 20);
    const auto at = [mean](int i) { return mean->data()->at(i)->value; };
    QCOMPARE(at(5), (9 + 16 + 25 + 36 + 49) / 5.0);  // two on both sides
    QCOMPARE(at(0), 0.0);                            // none before it, so none after it
    QCOMPARE(at(1), (0 + 1 + 4) / 3.0);
    QCOMPARE(at(11), (81 + 100 + 121 + 169) / 4.0);  // without step 12
    QCOMPARE(at(19), 361.0);
  }

  // A step with a NaN and one in which something was set by hand are marked, each once.
  void whatHappenedInAStepIsMarked() {
    Bench b;
    TrainingView view(b.context());
    view.resize(500, 400);
    view.show();
    for (int i = 0; i < 8; ++i) b.store.addStep(stepOf(i, 1));
    for (const auto& [step, code] : {std::pair(3, "edited"), std::pair(3, "edited"), std::pair(6, "nan"),
                                     std::pair(6, "edited"), std::pair(5, "stopped")}) {
      snapshot::Alert alert;
      alert.set_step(step);
      alert.set_code(code);
      b.store.addAlert(alert);
    }
    const auto texts = [&] {
      QStringList all;
      auto* plot = view.findChild<QCustomPlot*>();
      for (int i = 0; i < plot->itemCount(); ++i)
        if (auto* text = qobject_cast<QCPItemText*>(plot->item(i))) all << text->text();
      return all;
    };
    QTRY_COMPARE(texts(),
                 (QStringList{QStringLiteral("edited by hand in step 3"), QStringLiteral("NaN, edited by hand in step 6")}));
  }

  // The norm of gradients that are still added up is no norm of an update; after the last of the round it is.
  void aHalfSummedGradientHasNoNorm() {
    StepSeries series;
    for (int i = 0; i < 4; ++i) {
      snapshot::StepRecord step;
      step.set_step(i);
      step.set_updated(i % 2 == 1);
      for (const char* kind : {"parameter", "gradient"}) {
        auto* s = step.add_statistics();
        s->set_kind(kind);
        s->mutable_statistics()->set_norm(1 + i);
      }
      series.add(step);
    }
    QVERIFY(std::isnan(series.norm()[0]) && std::isnan(series.norm()[2]));
    QCOMPARE(series.norm()[1], 2.0);
    QCOMPARE(series.norm()[3], 4.0);
  }

  void valuesFollowTheSteps() {
    Bench b;
    ValueHistoryView view(b.context());
    view.resize(900, 400);
    view.show();
    b.store.setGraph(graph());
    QVERIFY(!view.emptyText().isEmpty());
    for (int i = 0; i < 4; ++i) {
      auto step = std::make_shared<snapshot::StepRecord>(*stepOf(i, 1));
      for (const auto& [kind, norm] : {std::pair("parameter", 10.0), std::pair("gradient", 1.0 + i)}) {
        if (i == 2) continue;
        auto* s = step->add_statistics();
        s->set_kind(kind);
        s->set_of("h.0.weight");
        s->set_value(kind[0] == 'g' ? 13 : 10);
        s->mutable_statistics()->set_norm(norm);
        s->mutable_statistics()->set_count(6);
        s->mutable_statistics()->set_nan(i == 1 && kind[0] == 'g' ? 2 : 0);
      }
      if (i == 0) QCOMPARE(gradientNorm(step->statistics()), 1.0);
      if (i == 1) QVERIFY(std::isnan(gradientNorm(step->statistics())));
      if (i == 2) QVERIFY(gradientNorm(step->statistics()) < 0);
      b.store.addStep(std::move(step));
    }
    QVERIFY(view.emptyText().isEmpty());
    auto* table = view.findChild<RowTableView*>();
    QTRY_COMPARE(table->model()->rowCount(), 2);
    QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(view.series()[0].kind, std::string("gradient"));
    QCOMPARE(view.series()[0].points.size(), std::size_t{3});
    QCOMPARE(table->model()->index(0, 2).data(RowTableModel::kSortRole).toDouble(), 4.0);
    QCOMPARE(table->model()->index(0, 3).data(RowTableModel::kSortRole).toDouble(), 4.0);  // to the first
    QCOMPARE(table->model()->index(0, 4).data(RowTableModel::kSortRole).toDouble(), 0.4);  // to the parameter
    QCOMPARE(table->model()->index(0, 9).data().toString(), QStringLiteral("0 (1)"));      // step 1 had some
    table->setCurrentIndex(table->model()->index(1, 0));
    QCOMPARE(view.shown(), 1);
    QCOMPARE(b.selection.selection().value, 10);
  }

  // Of a long run every step has its numbers; whole records are kept of the newest, spans of 64.
  void aLongRunIsKeptInColumns() {
    constexpr int kSteps = 100'000;
    SnapshotStore store;
    int told = 0;
    std::int64_t lastTold = -1;
    connect(&store, &SnapshotStore::stepsChanged, &store, [&] {
      ++told;
      lastTold = store.series().step().back();
    });
    QElapsedTimer timer;
    timer.start();
    for (int i = 0; i < kSteps; ++i) {
      auto step = std::make_shared<snapshot::StepRecord>();
      step->set_step(i);
      step->set_loss(1.0 / (1 + i));
      step->set_has_loss(true);
      step->set_ns(1000 + i);
      for (int s = 0; s < 3; ++s) step->add_spans()->set_instruction(s);
      if (i % 50 == 0) step->add_statistics()->set_kind("gradient");
      store.addStep(std::move(step));
    }
    const double seconds = static_cast<double>(timer.elapsed()) / 1000;
    QCOMPARE(store.series().size(), std::size_t{kSteps});
    QCOMPARE(store.series().loss()[50'000], 1.0 / 50'001);
    QCOMPARE(store.series().ns()[99'999], 100'999);
    QVERIFY2(store.steps().size() < 3000, qPrintable(QString::number(store.steps().size())));
    QCOMPARE(store.steps().back()->step(), kSteps - 1);
    const auto spans =
        std::count_if(store.steps().begin(), store.steps().end(), [](const StepPtr& s) { return s->spans_size() > 0; });
    QCOMPARE(spans, 64);
    QVERIFY(std::is_sorted(store.steps().begin(), store.steps().end(),
                           [](const StepPtr& a, const StepPtr& b) { return a->step() < b->step(); }));
    const auto sampled =
        std::count_if(store.steps().begin(), store.steps().end(), [](const StepPtr& s) { return s->statistics_size() > 0; });
    QVERIFY2(sampled > 100, "older steps with statistics are thinned out, not dropped");
    // Told as often as anybody can look, and of the last one in any case.
    QVERIFY2(told <= SignalRate::kPerSecond * (2 + seconds), qPrintable(QString::number(told)));
    QTRY_COMPARE(lastTold, std::int64_t{kSteps - 1});

    store.takeBackFrom(99'990);
    QCOMPARE(store.series().size(), std::size_t{99'990});
    QCOMPARE(store.steps().back()->step(), 99'989);
    QCOMPARE(store.series().nearest(70.4), std::size_t{70});
    QCOMPARE(store.series().nearest(1e9), std::size_t{99'989});
  }
};

SS_QT_CLASS(QApplication, StepsViewsTest)
#include "tst_steps_views.moc"
