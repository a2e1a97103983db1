// SPDX-License-Identifier: GPL-3.0-or-later
// Flame graph and start-up chart on made-up steps, and what drawn views draw with.
#include <qcustomplot.h>

#include <QtTest>

#include "tests/support/qt_classes.h"
#include "tests/views_drawing/generated_graph.h"
#include "tests/views_drawing/shown_views.h"
#include "views/common/step_plans.h"
#include "views/common/tokens.h"
#include "views/drawing/axis_ticks.h"
#include "views/drawing/plot_style.h"
#include "views/drawing/text_cache.h"
#include "views/flame/flame_view.h"
#include "views/model_tree/model_tree_view.h"
#include "views/startup_chart/startup_chart_view.h"

using namespace stepscope;

class DrawnViewsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void textsAreShortenedButNeverToCrumbs() {
    TextCache cache(smallFont());
    const QString name = QStringLiteral("SoftmaxCrossEntropyLossGrad");
    QCOMPARE(cache.legible(name, cache.width(name) + 1), name);
    QVERIFY(cache.legible(name, cache.width(name) * 0.7).size() >= 7);
    QCOMPARE(cache.legible(name, cache.width(QStringLiteral("S…d")) + 1), QString());
    QCOMPARE(cache.legible(QStringLiteral("fc"), 100), QStringLiteral("fc"));
    QCOMPARE(cache.legible(QStringLiteral("Product"), 12), QString());
  }

  // The graph of a plan comes before the plan. What ran until then ran under another one.
  void modulesHaveNoTimesOfAnotherPlan() {
    Window w;
    w.fill();
    ModelTreeView view(w.context());
    view.resize(600, 400);
    view.setVisible(true);
    const auto* tree = view.findChild<QTreeWidget*>(QStringLiteral("model_tree"));
    QVERIFY(tree);
    const auto time = [tree] {
      return tree->topLevelItemCount() > 0 ? tree->topLevelItem(0)->text(2) : QStringLiteral("nothing is shown");
    };
    const auto nodes = [tree] { return tree->topLevelItemCount() > 0 ? tree->topLevelItem(0)->text(1) : QString(); };
    QTRY_VERIFY(!nodes().isEmpty() && !time().isEmpty());
    const QString before = nodes();
    const snapshot::Graph smaller = generated::step({.blocks = 3});
    StepPlans::of(w.store).another();
    w.store.setGraph(GraphSnapshot::make(smaller));
    QTRY_VERIFY(nodes() != before);
    w.store.setPlan(PlanSnapshot::make(generated::plan(smaller)));
    QTRY_COMPARE(time(), QString());
  }

  void aLegendStandsWhereItCoversTheLeast() {
    QCustomPlot plot;
    plot.resize(360, 240);
    plot.show();
    auto* curve = plot.addGraph();
    curve->setName(QStringLiteral("measured"));
    curve->setLineStyle(QCPGraph::lsNone);
    plot.legend->setVisible(true);
    dressAxes(plot);
    dressLegend(*plot.legend);
    keepLegendClear(*plot.axisRect(), *plot.legend);
    plot.xAxis->setRange(0, 1);
    plot.yAxis->setRange(0, 1);
    const QVector<QPointF> corners{{0.92, 0.88}, {0.08, 0.88}, {0.08, 0.12}, {0.92, 0.12}};
    for (int free = 0; free < 4; ++free) {
      QVector<double> x, y;
      for (int i = 0; i < 4; ++i) {
        if (i == free) continue;
        x << corners[i].x();
        y << corners[i].y();
      }
      curve->setData(x, y);
      plot.replot();
      const QRect legend = plot.legend->outerRect();
      QVERIFY(legend.width() > 40);
      for (int i = 0; i < 4; ++i)
        QCOMPARE(legend.contains(curve->coordsToPixels(corners[i].x(), corners[i].y()).toPoint()), i == free);
    }
  }

  // Steps are whole and from 0, and their numbers stand apart on a narrow plot.
  void stepsAreNotNegativeAndTheirNumbersStandApart() {
    QCustomPlot plot;
    dressAxes(plot);
    countWhole(*plot.xAxis);
    fitTicks(plot);
    const auto labels = [&](double from, double to) {
      plot.xAxis->setRange(from, to);
      for (int i = 0; i < 3; ++i) plot.replot();
      return plot.xAxis->tickVectorLabels().toList();
    };
    plot.resize(400, 200);
    QCOMPARE(labels(-1, 1), QStringList({QStringLiteral("0"), QStringLiteral("1")}));
    QCOMPARE(labels(6.5, 7.5), QStringList({QStringLiteral("7")}));
    for (const int width : {150, 200, 260, 400}) {
      plot.resize(width, 200);
      for (const double most : {39.0, 1'109.0, 1'250'000.0}) {
        const QStringList shown = labels(0, most);
        const auto ticks = plot.xAxis->tickVector();
        QVERIFY(!shown.isEmpty());
        const QFontMetricsF metrics(plot.xAxis->tickLabelFont());
        for (qsizetype i = 0; i + 1 < shown.size(); ++i) {
          const double a = plot.xAxis->coordToPixel(ticks[i]) + metrics.horizontalAdvance(shown[i]) / 2,
                       b = plot.xAxis->coordToPixel(ticks[i + 1]) - metrics.horizontalAdvance(shown[i + 1]) / 2;
          QVERIFY2(b - a >= 4, qPrintable(QStringLiteral("%1 px: %2").arg(width).arg(shown.join(' '))));
        }
      }
    }
  }

  // Whatever is drawn, and on whichever scale: fewer than three numbers tell no scale. They stand apart.
  void anUprightAxisHasThreeNumbers_data() {
    QTest::addColumn<bool>("logarithmic");
    for (const bool logarithmic : {false, true}) QTest::newRow(logarithmic ? "log" : "linear") << logarithmic;
  }
  void anUprightAxisHasThreeNumbers() {
    QFETCH(bool, logarithmic);
    QCustomPlot plot;
    dressAxes(plot);
    fitTicks(plot);
    if (logarithmic) {
      plot.yAxis->setScaleType(QCPAxis::stLogarithmic);
      countLogarithmic(*plot.yAxis);
    }
    std::vector<QCPRange> ranges{{2.07, 2.53}, {0.1, 1}, {219.9, 220.1}, {1e-9, 3e-9}, {0.5, 41}, {1e-8, 1e3}, {6.9, 6.91}};
    if (!logarithmic)
      for (const double most : {0.9, 1.1, 1.0, 2.24, 0.011, 7.7e-9, 3e20, 4.99}) ranges.emplace_back(-most, most);
    for (const int height : {90, 120, 200, 420}) {
      plot.resize(400, height);
      for (const QCPRange& range : ranges) {
        plot.yAxis->setRange(range);
        for (int i = 0; i < 3; ++i) plot.replot();
        const QStringList shown = plot.yAxis->tickVectorLabels().toList();
        const QVector<double> ticks = plot.yAxis->tickVector();
        const QString about = QStringLiteral("%1..%2 at %3 px: %4")
                                  .arg(range.lower)
                                  .arg(range.upper)
                                  .arg(height)
                                  .arg(shown.join(QStringLiteral(" | ")));
        const int line = QFontMetrics(smallFont()).height(), room = plot.axisRect()->height();
        if (room >= 3 * line) QVERIFY2(shown.size() >= 3, qPrintable(about));
        QVERIFY2(shown.size() <= 10 && QSet<QString>(shown.begin(), shown.end()).size() == shown.size(), qPrintable(about));
        for (qsizetype i = 0; i + 1 < ticks.size(); ++i)
          QVERIFY2(plot.yAxis->coordToPixel(ticks[i]) - plot.yAxis->coordToPixel(ticks[i + 1]) >= 0.8 * line,
                   qPrintable(about));
      }
    }
  }

  void ticksAreRoundAndFew() {
    for (const double t : decimalTicks(0, 97, 5)) QVERIFY(std::abs(t / 20 - std::round(t / 20)) < 1e-9);
    QVERIFY(decimalTicks(0, 97, 5).size() <= 6);
    QVERIFY(decimalTicks(1, 1, 5).empty());
    QVERIFY(binaryTicks(0, 100e6, 4).size() <= 5);
  }

  void flameGraphAddsUp() {
    Window w;
    w.fill();
    const FlameTree tree = FlameTree::make(w.store.steps(), w.store.plan().get(), w.store.graph().get(), 0, 0);
    std::int64_t spans = 0;
    for (const auto& step : w.store.steps()) {
      for (const auto& span : step->spans()) spans += span.end_ns() - span.begin_ns();
    }
    QCOMPARE(tree.ns, spans);
    for (std::size_t i = 1; i < tree.nodes.size(); ++i) {
      const FlameNode &n = tree.nodes[i], &p = tree.nodes[static_cast<std::size_t>(n.parent)];
      QVERIFY(n.begin >= p.begin && n.begin + n.ns <= p.begin + p.ns);
    }
  }

  void startupChartShowsPhases() {
    Window w;
    StartupChartView view(w.context());
    QVERIFY(!view.emptyText().isEmpty());
    w.store.setPhases(generated::phases());
    QVERIFY(view.emptyText().isEmpty());
    QVERIFY(view.headerText().contains("ms"));
    view.resize(700, 200);
    QVERIFY(!view.grab().isNull());
  }
};

SS_QT_CLASS(QApplication, DrawnViewsTest)
#include "tst_drawn_views.moc"
