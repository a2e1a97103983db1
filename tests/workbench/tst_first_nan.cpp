// SPDX-License-Identifier: GPL-3.0-or-later
// The first number that is not finite: where a run stops at it, and where one that goes on leads back to it.
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "tests/support/qt_classes.h"
#include "tests/workbench/graph_values.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/batch/picture_grid.h"
#include "views/common/details.h"
#include "views/common/tokens.h"
#include "views/tensors/statistics_panel.h"

using namespace stepscope;

class FirstNanTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // "Break on NaN" holds at full speed: the run stops where the number came from, and names the row that brought it.
  void aNanAtStep400StopsARunAtFullSpeed() {
    const QString data = folder_.filePath(QStringLiteral("poisoned.safetensors"));
    QVERIFY(writeDigits(data, 410, 400));
    TestModel model = bundledModels()[0];
    model.data = data;
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(model), w);
    w.loop().act([&] { w->session().train(410); });
    QVERIFY(w.settled());
    const auto& p = w->store().position();
    QCOMPARE(p.step(), 400);
    QVERIFY2(p.in_step() && p.breakpoint() != 0, p.stopped_by().c_str());
    QCOMPARE(w->store().steps().size(), std::size_t{400});
    for (const StepPtr& step : w->store().steps())
      QVERIFY2(step->has_gradient_norm() && step->gradient_norm() > 0, "the gradient norm of every step");
    const auto& alerts = w->store().alerts();
    const auto alert = std::find_if(alerts.begin(), alerts.end(), [](const auto& a) { return a.code() == "nan"; });
    QVERIFY(alert != alerts.end());
    QVERIFY2(std::count_if(alerts.begin(), alerts.end(), [](const auto& a) { return a.code() == "nan"; }) == 1,
             alert->message().c_str());
    QCOMPARE(alert->step(), 400);
    QCOMPARE(alert->instruction(), p.instruction() - 1);
    QVERIFY(alert->has_sample());
    QCOMPARE(alert->sample(), 3);
    const int image = valueOf(w, [](const auto& v) { return v.role() == snapshot::INPUT && v.dims_size() == 4; });
    QCOMPARE(alert->value(), image);
    QVERIFY2(w->notice().isStop() && w->notice().text().contains(QStringLiteral("row 3")), qPrintable(w->notice().text()));
    QCOMPARE(w->selection().selection().instruction, alert->instruction());
    w.view(QStringLiteral("training"));
    w.picture(QStringLiteral("nan-stopped"));

    // The table opens at the first NaN, of what the instruction made and of what brought it in, with the keyboard left
    // alone.
    w.view(QStringLiteral("tensors"));
    const auto* table =
        w->board().find(QStringLiteral("tensors"))->findChild<QTableView*>(QStringLiteral("tensor_elements"));
    const auto atNaN = [&] {
      return w.loop().wait([&] {
        const QModelIndex at = table->currentIndex();
        return at.data().toString() == QStringLiteral("NaN") && table->visualRect(at).intersects(table->viewport()->rect());
      });
    };
    QVERIFY(atNaN());
    QVERIFY(w.select(Selection::ofValue(image)));
    QCOMPARE(w.shownTensor()->statistics().nan(), 1);
    QVERIFY(atNaN() && !table->hasFocus());
    w.picture(QStringLiteral("nan-opened"));
    // Another part stays where a person went, and from the count of NaN one click leads back to the element.
    auto* slice = w->board().find(QStringLiteral("tensors"))->findChild<QLineEdit*>(QStringLiteral("tensor_slice"));
    w.loop().act([&] {
      slice->setText(QStringLiteral("0, 0, :, :"));
      emit slice->returnPressed();
    });
    QVERIFY(w.settled());
    QVERIFY(table->currentIndex().data().toString() != QStringLiteral("NaN"));
    auto* statistics = w->board().find(QStringLiteral("tensors"))->findChild<StatisticsPanel*>();
    QVERIFY(statistics);
    w.loop().act([&] { emit statistics->findChild<Details*>()->commandClicked(QStringLiteral("first")); });
    QVERIFY(w.settled());
    QCOMPARE(table->currentIndex().data().toString(), QStringLiteral("NaN"));
    w.picture(QStringLiteral("nan-element"));
    // One bad pixel hides no picture.
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.loop().act([batch] { batch->openPage(BatchView::kContents); });
    w.picture(QStringLiteral("nan-batch"));
    QVERIFY(w.loop().wait([batch] { return batch->findChild<PictureGrid*>()->pictures() == 32; }, 5'000));
    QVERIFY_LOOP(w);
  }

  // With nothing to break on the run goes on, tells once, and one click goes back to where it came from.
  void aRunThatGoesOnTellsOfTheFirstNanAndLeadsBackToIt() {
    const QString data = folder_.filePath(QStringLiteral("poisoned.safetensors"));
    QVERIFY(writeDigits(data, 410, 400));
    TestModel model = bundledModels()[0];
    model.data = data;
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(model), w);
    w.loop().act([&] { w->session().setBreakpoints({}); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->session().train(406); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 406);
    QVERIFY(std::isnan(w->store().steps().back()->loss()));
    const auto& alerts = w->store().alerts();
    const auto isNan = [](const auto& a) { return a.code() == "nan"; };
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 1);
    const snapshot::Alert alert = *std::find_if(alerts.begin(), alerts.end(), isNan);
    QCOMPARE(alert.step(), 400);
    QCOMPARE(alert.sample(), 3);
    QVERIFY(w->notice().isProblem());
    w.view(QStringLiteral("training"));
    w.picture(QStringLiteral("nan-goes-on"));
    auto* show = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY(show && show->isVisible());
    w.loop().act([show] { show->click(); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 400);
    QCOMPARE(w.instruction(), alert.instruction() + 1);
    QCOMPARE(w->store().steps().size(), std::size_t{400});
    QCOMPARE(w->selection().selection().instruction, alert.instruction());
    QVERIFY(w.shownTensor() && w.shownTensor()->statistics().nan() > 0);
    w.view(QStringLiteral("tensors"));
    const auto* table =
        w->board().find(QStringLiteral("tensors"))->findChild<QTableView*>(QStringLiteral("tensor_elements"));
    QVERIFY2(w.loop().wait([&] { return table->currentIndex().data().toString() == QStringLiteral("NaN"); }, 5'000),
             "the table opens at the first NaN, as where a run stops");
    w.picture(QStringLiteral("nan-shown"));
    // It stays while the step goes on, without another one of the loss; a rewind before it takes it away until it runs
    // again.
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 1);
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().position().step(), 401);
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 1);
    QCOMPARE(std::find_if(alerts.begin(), alerts.end(), isNan)->instruction(), alert.instruction());
    w.loop().act([&] { w->session().rewind(398); });
    QVERIFY(w.settled());
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 0);
    QVERIFY(std::ranges::none_of(alerts, [](const auto& a) { return a.step() >= 398; }));
    w.loop().act([&] { w->session().train(8); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 406);
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 1);
    QCOMPARE(std::find_if(alerts.begin(), alerts.end(), isNan)->message(), alert.message());
    // A build lists all alerts of the session: those that were cleared stay away.
    const auto toggle = [&](const QString& value) {
      w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("pass.group_updates"), value); });
      return w.settled();
    };
    QVERIFY(toggle(QStringLiteral("off")));
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 1);
    QVERIFY_DONE(w.act("alerts_clear"), w);
    QVERIFY(toggle(QStringLiteral("on")));
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 0);
    QVERIFY_LOOP(w);
  }

  // A condition is looked at while steps run at full speed; the one in which it holds stands behind what made the value.
  void aRunWithAConditionGoesAtFullSpeed() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    int walked = 0;
    QObject::connect(&w->session(), &ModelSession::stepRecorded, &w->session(),
                     [&walked](const StepPtr&, bool byHand) { walked += byHand; });
    snapshot::Breakpoint condition;
    condition.set_predicate("loss value > 1e9");
    condition.set_enabled(true);
    w.loop().act([&] { w->session().setBreakpoints({condition}); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() >= 20; }, 60'000));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QCOMPARE(walked, 0);
    QVERIFY(!w->store().position().in_step());
    condition.set_predicate("loss value > 0");
    w.loop().act([&] { w->session().setBreakpoints({condition}); });
    QVERIFY(w.settled());
    const std::int64_t step = w->store().position().step();
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.settled());
    const auto& p = w->store().position();
    QVERIFY2(p.in_step() && p.breakpoint() != 0 && p.step() == step, p.stopped_by().c_str());
    QVERIFY2(w->notice().isStop() && w->notice().text().contains(QStringLiteral("loss value > 0")),
             qPrintable(w->notice().text()));
    QCOMPARE(w->selection().selection().instruction, p.instruction() - 1);
  }

  // A training step (F8) stops at what F5 stops at, with the same words: at full speed from the begin of a step, and from
  // within one.
  void aTrainingStepStopsWhereARunStops() {
    const QString data = folder_.filePath(QStringLiteral("early.safetensors"));
    QVERIFY(writeDigits(data, 6, 2));
    TestModel model = bundledModels()[0];
    model.data = data;
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(model), w);
    for (int i = 0; i < 2; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().position().step(), 2);
    QVERIFY(!w->store().position().in_step() && w->store().steps().size() == 2);
    const auto stoppedAt = [&](const char* action) {
      if (!w.act(action) || !w->notice().isStop() || !w->store().position().in_step()) return QString();
      return QStringLiteral("%1: %2").arg(w.instruction()).arg(w->notice().text());
    };
    const QString run = stoppedAt("run");
    QVERIFY2(run.contains(QStringLiteral("NaN")), qPrintable(run));
    QVERIFY(w.act("abandon"));
    w.loop().act([&] { w->session().rewind(2); });
    QVERIFY(w.settled() && !w->store().position().in_step());
    QCOMPARE(stoppedAt("step_whole"), run);
    QCOMPARE(w->store().position().step(), 2);
    QCOMPARE(w->store().steps().size(), std::size_t{2});
    // From within the step.
    QVERIFY(w.act("abandon") && !w->store().position().in_step());
    QVERIFY(w.act("step"));
    const int begun = w.instruction();
    const QString within = stoppedAt("step_whole");
    QVERIFY2(within.contains(QStringLiteral("NaN")) || begun >= run.section(':', 0, 0).toInt(), qPrintable(within));
  }

  // Conditions and places hold at full speed too, also those that are set while it runs; the steps that were asked for are
  // made all the same.
  void fullSpeedStopsAtConditionsAndPlaces() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    snapshot::Breakpoint condition;
    condition.set_predicate("loss value < 1.5");
    condition.set_enabled(true);
    w.loop().act([&] { w->session().setBreakpoints({condition}); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->session().train(2'000); });
    QVERIFY(w.settled());
    const auto& p = w->store().position();
    QVERIFY2(p.in_step() && p.breakpoint() != 0 && p.step() < 2'000, p.stopped_by().c_str());
    QVERIFY(w->store().steps().back()->loss() >= 1.5);
    const std::int64_t at = p.step();
    // A place that is set while it runs; the run goes on to its goal when it is taken away.
    w.loop().act([&] { w->session().setBreakpoints({}); });
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().position().step() > at + 20; }));
    QVERIFY(w->session().atFullSpeed());
    w.loop().act([&] { w->session().toggleBreakpoint(5); });
    QVERIFY(w.settled());
    QVERIFY2(p.in_step() && p.breakpoint() != 0, p.stopped_by().c_str());
    QCOMPARE(w.instruction(), 5);
    QVERIFY(!w->session().running() && w->session().goal() == 0);
    // One that is passed by a plan that never comes there: the steps end where they were to end.
    snapshot::Breakpoint never;
    never.set_op("NoSuchOperator");
    never.set_enabled(true);
    w.loop().act([&] { w->session().setBreakpoints({never}); });
    const std::int64_t from = p.step();
    w.loop().act([&] { w->session().train(6); });
    QVERIFY(w.settled());
    QCOMPARE(p.step(), from + 7);
    QVERIFY(!p.in_step() && !w->session().running());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY_LOOP(w);
  }

  void aTrainingStepStopsAtBreakpoints() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().toggleBreakpoint(5); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    const auto& p = w->store().position();
    QVERIFY2(p.in_step() && p.breakpoint() != 0, p.stopped_by().c_str());
    QCOMPARE(w.instruction(), 5);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(!w->store().position().in_step(), "the step goes on to its end");
    QCOMPARE(w->store().position().step(), 2);
  }
};

SS_QT_CLASS(QApplication, FirstNanTest)
#include "tst_first_nan.moc"
