// SPDX-License-Identifier: GPL-3.0-or-later
// After a rewind, and after a step that was given up: what stands in the window is of the place where it is, or is gone.
#include <QMutex>
#include <QPushButton>
#include <QRegularExpression>
#include <QSemaphore>
#include <QSpinBox>
#include <QTest>
#include <algorithm>
#include <cstring>

#include "app/workbench/project_threads.h"
#include "app/workbench/recording.h"
#include "app/workbench/rewind_dialog.h"
#include "storage/queries.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/graph_values.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/batch/picture_grid.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/tensors/statistics_panel.h"
#include "views/timeline/timeline_view.h"
#include "views/value_history/value_history_view.h"

using namespace stepscope;

class RewoundTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // The window keeps the times of the last 64 steps. A rewind behind them finds those of the steps that stand in the
  // project.
  void afterARewindTheTimesOfTheStepsThatStandAreShown() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(90); });
    QVERIFY(w.settled());
    QVERIFY(w.recorded());
    w.loop().act([&] { w->applyLayout(QStringLiteral("Profile")); });
    const auto before = w->store().steps()[5];
    QVERIFY2(before->step() == 5 && before->spans_size() == 0, "the window has let go of its times");
    w.loop().act([&] { w->session().rewind(12); });
    QVERIFY(w.settled());
    const auto& steps = w->store().steps();
    const auto allHaveTimes = [&steps] {
      return steps.size() == 12 && std::ranges::all_of(steps, [](const StepPtr& s) { return s->spans_size() > 0; });
    };
    QVERIFY(w.loop().wait(allHaveTimes, 10'000));
    QVERIFY(!w->store().readingSteps());
    QCOMPARE(steps[5]->step(), 5);
    QCOMPARE(steps[5]->begin_ns(), before->begin_ns());
    QCOMPARE(steps[5]->loss(), before->loss());
    auto* timeline = static_cast<TimelineView*>(w.view(QStringLiteral("timeline")));
    QVERIFY(w.loop().wait([timeline] { return timeline->canvas().model()->steps().size() == 12; }, 10'000));
    for (const QString& id : {QStringLiteral("timeline"), QStringLiteral("flame"), QStringLiteral("hot_ops")}) {
      View* view = w.view(id);
      QVERIFY2(w.loop().wait([view] { return view->emptyText().isEmpty(); }, 10'000), qPrintable(view->emptyText()));
    }
    QCOMPARE(timeline->canvas().model()->others(), 0);  // they ran under the plan that is shown
    QCOMPARE(w->store().timing(0).step, 11);
    w.picture(QStringLiteral("rewound-profile"));

    // The line goes on: new steps beside those of the file.
    w.loop().act([&] { w->session().train(2); });
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([timeline] { return timeline->canvas().model()->steps().size() == 14; }, 10'000));
    QCOMPARE(timeline->canvas().model()->steps().back().step, 13);
  }

  // SQL waits for no view that is being read, and what somebody asks for goes before what refills the views.
  void whatSomebodyAsksForDoesNotWaitForWhatIsReadAnew() {
    ProjectThreads threads;
    QSemaphore mayGoOn, sqlRan;
    QMutex lock;
    QStringList order;
    const auto note = [&](const char* what) {
      return [&, what](const QString&) {
        const QMutexLocker held(&lock);
        order << QLatin1String(what);
      };
    };
    QSemaphore reading;
    threads.read([&](const QString&) {
      reading.release();
      mayGoOn.tryAcquire(1, 60'000);
    });
    QVERIFY(reading.tryAcquire(1, 60'000));
    threads.read(note("refill"), ProjectThreads::Reader::kRefill);
    threads.read(note("view"));
    threads.read([&](const QString&) { sqlRan.release(); }, ProjectThreads::Reader::kSql);
    QVERIFY2(sqlRan.tryAcquire(1, 60'000), "while a view is read");
    mayGoOn.release();
    QTRY_VERIFY(threads.idle());
    QCOMPARE(order, QStringList({QStringLiteral("view"), QStringLiteral("refill")}));
  }

  // Another set-up begins another run of the project. A rewind behind it finds the steps of the run before.
  void afterARewindBehindAnotherSetUpTheTimesAreShownToo() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(70); });
    QVERIFY(w.settled());
    const auto begun = w->store().steps()[5]->begin_ns();
    snapshot::Configure configuration = w->session().configuration();
    auto* setting = configuration.add_settings();
    setting->set_name("lr");
    setting->set_value("0.002");
    w.loop().act([&] { w->session().build(configuration); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 70);
    w.loop().act([&] { w->session().train(140); });
    QVERIFY(w.settled() && w.recorded());
    QCOMPARE(w->store().project().runs().size(), std::size_t{2});
    QVERIFY2(w->store().steps()[5]->spans_size() == 0, "the window has let go of its times");
    w.loop().act([&] { w->session().rewind(12); });
    QVERIFY(w.settled());
    const auto& steps = w->store().steps();
    const auto allHaveTimes = [&steps] {
      return steps.size() == 12 && std::ranges::all_of(steps, [](const StepPtr& s) { return s->spans_size() > 0; });
    };
    QVERIFY(w.loop().wait(allHaveTimes, 10'000));
    QCOMPARE(steps[5]->begin_ns(), begun);
  }

  // The panes show the values of the step that a rewind came to, or say that there are none.
  void afterARewindNoValueIsOfAnotherStep() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"record.batch", "1"}}), w);
    const int loss = w->store().graph()->graph().loss();
    const int image = valueOf(w, [](const auto& v) { return v.role() == snapshot::INPUT && v.dims_size() == 4; });
    const int parameter = valueOf(w, [](const auto& v) { return v.role() == snapshot::INITIALIZER && v.trained(); });
    QVERIFY(loss >= 0 && image >= 0 && parameter >= 0);
    w->session().watch(loss, true);
    w->session().watch(parameter, true);
    QVERIFY(w.settled());

    // Before anything ran there is nothing to show, not zeros.
    QVERIFY(w.select(Selection::ofValue(image)));
    QVERIFY(w.shownTensor() && w.shownTensor()->elsewhere() && w.shownTensor()->data().empty());

    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.settled());
    QVERIFY(w.select(Selection::ofValue(parameter)));
    const std::string then = w.shownTensor()->data();
    QCOMPARE(w.shownTensor()->step(), 2);
    w.loop().act([&] { w->session().train(4); });
    QVERIFY(w.settled());
    QVERIFY(w.select(Selection::ofValue(loss)));
    QCOMPARE(w.shownTensor()->step(), 6);
    QVERIFY(w->store().statistics(loss) && w->store().timing(0).step == 6);
    const std::string bytesOfSix = w.shownTensor()->data();
    QVERIFY(!bytesOfSix.empty());
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.loop().act([batch] { batch->openPage(BatchView::kContents); });
    QVERIFY(w.loop().wait([batch] { return batch->findChild<PictureGrid*>()->pictures() == 32; }, 5'000));

    w.loop().act([&] { w->session().rewind(3); });
    QVERIFY(w.settled());
    w.picture(QStringLiteral("rewound"));
    QCOMPARE(w->store().position().step(), 3);
    QCOMPARE(w->store().steps().size(), std::size_t{3});
    QVERIFY(w.select(Selection::ofValue(loss)));
    w.picture(QStringLiteral("rewound-loss"));
    // A busy machine keeps no state of step 3: the steps before it run again, and leave the loss of step 2.
    if (w.shownTensor()->data().empty()) {
      QVERIFY(w.shownTensor()->elsewhere() && w.shownCells().isEmpty());
    } else {
      QCOMPARE(w.shownTensor()->step(), 2);
      QVERIFY2(w.shownTensor()->data() != bytesOfSix, "the bytes of step 6");
    }
    QVERIFY2(!w->store().statistics(loss) || w->store().statisticsStep(loss) == 2, "statistics of step 6");
    // State is there, as it was.
    QVERIFY(w.select(Selection::ofValue(parameter)));
    QCOMPARE(w.shownTensor()->step(), 2);
    QVERIFY2(w.shownTensor()->data() == then, "the parameter is that of step 2, bit for bit");
    QCOMPARE(w->store().statisticsStep(parameter), 2);
    for (int i = 0; i < w->store().plan()->size(); ++i) QVERIFY(w->store().timing(i).step < 3);
    QVERIFY2(batch->findChild<PictureGrid*>()->isHidden() || batch->findChild<PictureGrid*>()->pictures() == 0 ||
                 !batch->findChild<PictureGrid*>()->isVisible(),
             "the pictures of step 6");
    View* watch = w.view(QStringLiteral("watch"));
    QVERIFY(watch);
    w.picture(QStringLiteral("rewound-watch"));
    QCOMPARE(cellsOf(*watch).filter(QStringLiteral("6")).filter(QRegularExpression(QStringLiteral("^6$"))), QStringList());

    // And the step that runs then has its values.
    QVERIFY_DONE(w.act("step_whole"), w);
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.select(Selection::ofValue(loss)));
    QCOMPARE(w.shownTensor()->step(), 3);
    QVERIFY(!w.shownTensor()->data().empty());
    QVERIFY_LOOP(w);
  }

  // What a rewind costs: the nearest state before the step, and the steps from there.
  void theWayBackBeginsWithTheNearestState() {
    RewindWays ways;
    ways.first = 5;
    ways.last = 100;
    ways.loaded = {20, 60};
    ways.remembered = {70, 90};
    ways.stepNs = 1e6;
    ways.buildNs = 3e9;
    const auto is = [&ways](std::int64_t step, std::int64_t from, std::int64_t repeated, bool anew, double ns) {
      const RewindWay way = ways.to(step);
      return way.from == from && way.repeated == repeated && way.anew == anew && way.ns == ns;
    };
    QVERIFY(is(95, 60, 35, false, 35e6));
    QVERIFY(is(60, 60, 0, false, 0));
    QVERIFY2(is(70, 70, 0, false, 0), "the worker itself remembers it");
    QVERIFY2(is(12, 5, 7, true, 3.007e9), "no state before it: a build, and the steps from the first one");
    QVERIFY2(is(5, 5, 0, true, 3e9), "the first one");
    ways.stepNs = 0;
    QVERIFY2(is(95, 60, 35, false, 0), "nothing was measured");
  }

  // Before it rewinds, the dialog says where it can go, how, and what becomes of the steps after that.
  void theRewindSaysWhatItDoes() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(40); });
    QVERIFY(w.settled());
    const auto open = [&]() -> RewindDialog* {
      w.loop().act([&] { w->actions()[QStringLiteral("rewind")]->trigger(); });
      RewindDialog* dialog = nullptr;
      w.loop().wait([&] { return (dialog = w->findChild<RewindDialog*>()) != nullptr; });
      return dialog;
    };
    RewindDialog* dialog = open();
    QVERIFY(dialog);
    auto* step = dialog->findChild<QSpinBox*>(QStringLiteral("rewind_step"));
    const auto* way = dialog->findChild<QLabel*>(QStringLiteral("rewind_way"));
    const auto* later = dialog->findChild<QLabel*>(QStringLiteral("rewind_later"));
    auto* go = dialog->findChild<QPushButton*>(QStringLiteral("rewind_go"));
    QVERIFY2(way->text().contains(QStringLiteral("0 to 40")), qPrintable(way->text()));
    w.loop().act([&] { step->setValue(30); });
    const QRegularExpression text(
        QStringLiteral("kept state is that of step (\\d+); from there (\\d+) steps run again, about \\d"));
    const auto found = text.match(way->text());
    QVERIFY2(found.hasMatch(), qPrintable(way->text()));
    QCOMPARE(found.captured(1).toInt() + found.captured(2).toInt(), 30);
    QVERIFY2(later->text().startsWith(QStringLiteral("10 steps, 30 to 39, are taken back")), qPrintable(later->text()));
    if (const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES"); !folder.isEmpty())
      dialog->grab().save(folder + QStringLiteral("/rewind-dialog.png"));
    // A step beyond the run is not another one.
    w.loop().act([&] {
      step->selectAll();
      QTest::keyClicks(step, QStringLiteral("250"));
    });
    QVERIFY2(way->text().startsWith(QStringLiteral("Not step 250. Steps 0 to 40")), qPrintable(way->text()));
    QVERIFY(!go->isEnabled());
    if (const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES"); !folder.isEmpty())
      dialog->grab().save(folder + QStringLiteral("/rewind-dialog-beyond.png"));
    w.loop().act([&] { QTest::keyClick(step, Qt::Key_Return); });
    QVERIFY(dialog->isVisible());
    QCOMPARE(w->store().position().step(), 40);
    w.loop().act([&] {
      step->selectAll();
      QTest::keyClicks(step, QStringLiteral("30"));
      QTest::keyClick(step, Qt::Key_Return);
    });
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == 30; }) && w.settled());
    QCOMPARE(w->store().steps().back()->step(), 29);
    // The state that it stands at is kept.
    dialog = open();
    QVERIFY(dialog);
    step = dialog->findChild<QSpinBox*>(QStringLiteral("rewind_step"));
    way = dialog->findChild<QLabel*>(QStringLiteral("rewind_way"));
    w.loop().act([&] { step->setValue(30); });
    QVERIFY2(way->text().contains(QStringLiteral("Its state is kept")), qPrintable(way->text()));
    w.loop().act([&] { dialog->reject(); });
    QVERIFY_LOOP(w);
  }

  // A watched value has the numbers of the newest step that computed it, although its memory is another one's by then.
  void theWatchHasTheNumbersOfTheNewestStep() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    const auto& plan = *w->store().plan();
    int early = -1;  // memory of which is given to another value in the step
    for (int i = 0; i < plan.size() && early < 0; ++i)
      if (const auto& in = *plan.instruction(i);
          !in.view() && in.outputs_size() > 0 && plan.overwrittenBy(plan.bufferOfValue(in.outputs(0).value())) >= 0)
        early = i;
    QVERIFY(early >= 0);
    const int value = plan.instruction(early)->outputs(0).value();
    w.loop().act([&] { w->session().watch(value, true); });
    QVERIFY(w.settled());
    View* watch = w.view(QStringLiteral("watch"));
    QCOMPARE(cellsOf(*watch).at(1), QStringLiteral("no step has run"));
    w.loop().act([&] { w->session().runTo(early + 1); });
    QVERIFY(w.settled());
    QVERIFY2(w.loop().wait([&] { return cellsOf(*watch).at(1) == QStringLiteral("0"); }),
             qPrintable(cellsOf(*watch).join('|')));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const auto shows = [&](const QString& step) {
      return w.loop().wait([&] { return cellsOf(*watch).at(1) == step && cellsOf(*watch).size() == 8; });
    };
    QVERIFY2(shows(QStringLiteral("1")), qPrintable(cellsOf(*watch).join('|')));
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.select(Selection::ofValue(value)) && w.shownTensor());
    QVERIFY2(!w.shownTensor()->unavailable().empty(), "its memory is another value's");
    // What the pane shows of it says that it is gone.
    const auto* statistics = w->board().find(QStringLiteral("tensors"))->findChild<StatisticsPanel*>();
    QVERIFY(statistics && statistics->isVisible());
    QVERIFY2(statistics->findChild<Details*>()->toPlainText().contains(QStringLiteral("of step 1, while it was in memory")),
             qPrintable(statistics->findChild<Details*>()->toPlainText()));
    w.picture(QStringLiteral("gone-statistics"));
    w.view(QStringLiteral("watch"));
    w.loop().act([&] { w->session().train(6); });
    QVERIFY(w.settled());
    QVERIFY2(shows(QStringLiteral("7")), qPrintable(cellsOf(*watch).join('|')));
    w.picture(QStringLiteral("watch-newest"));
    // Each step's record has them, and the watch shows those of the newest.
    for (const StepPtr& step : w->store().steps()) {
      const auto& all = step->statistics();
      const auto at = std::find_if(all.begin(), all.end(), [](const auto& s) { return s.kind() == "watched"; });
      QVERIFY2(at != all.end() && at->value() == value, qPrintable(QString::number(step->step())));
      if (step->step() == 7) QCOMPARE(at->statistics().max(), w->store().statistics(value)->max());
    }
    auto* history = static_cast<ValueHistoryView*>(w.view(QStringLiteral("value_history")));
    const auto& series = history->series();
    QVERIFY(w.loop().wait([&] {
      return std::any_of(series.begin(), series.end(), [](const ValueSeries& s) { return s.kind == "watched"; });
    }));
    for (const ValueSeries& s : series)
      if (s.kind == "watched") QCOMPARE(s.points.size(), std::size_t{8});
    w.view(QStringLiteral("watch"));
    QVERIFY_DONE(w.act("step"), w);
    if (early > 0) QCOMPARE(cellsOf(*watch).at(1), QStringLiteral("7, not computed yet"));
    // Watched when its memory is gone: from the next step on.
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().watch(value, false); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().watch(value, true); });
    QVERIFY(w.settled());
    QVERIFY2(cellsOf(*watch).at(1).contains(QStringLiteral("next step")), qPrintable(cellsOf(*watch).join('|')));
  }

  // A step that is given up leaves no values behind, either.
  void aStepThatIsGivenUpLeavesNoValues() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const int image = valueOf(w, [](const auto& v) { return v.role() == snapshot::INPUT && v.dims_size() == 4; });
    QVERIFY(w.select(Selection::ofValue(image)));
    QCOMPARE(w.shownTensor()->step(), 0);
    QVERIFY(!w.shownTensor()->data().empty());
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.select({}) && w.select(Selection::ofValue(image)));
    QCOMPARE(w.shownTensor()->step(), 1);
    QVERIFY_DONE(w.act("abandon"), w);
    QVERIFY(w.select({}) && w.select(Selection::ofValue(image)));
    QVERIFY2(w.shownTensor()->data().empty() && w.shownTensor()->elsewhere(), "the batch of step 1, labelled 0");
  }

  // A step begins as it began: with what was edited before it. What a rewind took back is in no report, and an edit that is
  // made again stands there once. `kept`: of the states that the window keeps; else of those of the worker.
  void editsBelongToTheStepAfterThem_data() {
    QTest::addColumn<bool>("kept");
    QTest::newRow("a state of the worker") << false;
    QTest::newRow("a state of the window") << true;
  }
  void editsBelongToTheStepAfterThem() {
    QFETCH(bool, kept);
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    const int parameter = valueOf(w, [](const auto& v) { return v.role() == snapshot::INITIALIZER && v.trained(); });
    const auto lossOf = [&](std::int64_t step) {
      const auto& steps = w->store().steps();
      const auto found = std::find_if(steps.begin(), steps.end(), [step](const auto& s) { return s->step() == step; });
      return found == steps.end() ? -1.0 : (*found)->loss();
    };
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().editElement(parameter, {0, 0, 0, 0}, 3, 0); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const double edited = lossOf(3), after = lossOf(4);
    QVERIFY(edited > 0 && after > 0);
    if (kept) {  // a new worker has no states of its own
      w.loop().act([&] { w->actions()[QStringLiteral("restart")]->trigger(); });
      QVERIFY(w.settled());
    }
    w.loop().act([&] { w->session().rewind(3); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(lossOf(3), edited);
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(lossOf(4), after);
    QCOMPARE(editsInTheReport(w, 5), QStringList{QStringLiteral("3")});

    w.loop().act([&] { w->session().rewind(2); });
    QVERIFY(w.settled());
    QCOMPARE(editsInTheReport(w, 2), QStringList());
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(lossOf(3) != edited, "the edit was taken back with step 2");
    QCOMPARE(editsInTheReport(w, 4), QStringList());
  }

  // Ctrl+Z at the place where the element was set, after a rewind to it.
  void anEditIsTakenBackAfterARewindToIt() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    const int parameter = valueOf(w, [](const auto& v) { return v.role() == snapshot::INITIALIZER && v.trained(); });
    const auto first = [&] {
      float number = 0;
      if (w.select({}) && w.select(Selection::ofValue(parameter)) && w.shownTensor()->data().size() >= sizeof number)
        std::memcpy(&number, w.shownTensor()->data().data(), sizeof number);
      return number;
    };
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().editElement(parameter, {0, 0, 0, 0}, 3, 0.5); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().rewind(1); });
    QVERIFY(w.settled());
    QCOMPARE(first(), 3.0F);
    QVERIFY(w.act("undo"));
    QVERIFY(w.settled());
    QCOMPARE(first(), 0.5F);
  }

  // Between steps only what outlives a step can be set: the next step computes the rest anew.
  void aValueOfTheStepBeforeIsNotEdited() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const int loss = w->store().graph()->graph().loss();
    w.loop().act([&] { w->session().editElement(loss, {}, 2.5, 0); });
    QVERIFY(w.settled());
    QVERIFY2(w->store().findings().edit().problem.contains(QStringLiteral("expected a parameter")),
             qPrintable(w->store().findings().edit().problem));
  }

 private:
  // Steps that the project says were edited by hand, as soon as so many of its steps stand and what came after is written.
  static QStringList editsInTheReport(WindowDriver& w, std::size_t standing) {
    constexpr int kCommittedMs = 600;
    const std::string path = w->store().project().projectPath().toStdString();
    const auto steps = [&path] {
      const auto project = storage::Project::openReadOnly(path);
      const auto read = project ? storage::readSteps(*project, *storage::newestRun(*project))
                                : storage::Result<std::vector<storage::StepRow>>();
      return read ? read->size() : 0;
    };
    if (!w.loop().wait([&] { return steps() == standing; }, 10'000))
      return {QStringLiteral("%1 steps stand; expected %2").arg(steps()).arg(standing)};
    QTest::qWait(kCommittedMs);
    const auto project = storage::Project::openReadOnly(path);
    QStringList edited;
    for (const auto& alert : storage::readAlerts(*project, *storage::newestRun(*project)).value())
      if (alert.code == "edited") edited << QString::number(alert.step);
    return edited;
  }
};

SS_QT_CLASS(QApplication, RewoundTest)
#include "tst_rewound.moc"
