// SPDX-License-Identifier: GPL-3.0-or-later
// What follows the steps: sums over them, values from one to the next.
#include <QAbstractItemModelTester>
#include <QTest>
#include <cmath>

#include "engine/snapshot/gradient_norm.h"
#include "tests/views/view_bench.h"
#include "views/common/counted_steps.h"
#include "views/common/tokens.h"
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
};

QTEST_MAIN(StepsViewsTest)
#include "tst_steps_views.moc"
