// SPDX-License-Identifier: GPL-3.0-or-later
// What is asked for while a run goes on, and what a run says when it ends; with the real worker.
#include <signal.h>

#include <QElapsedTimer>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <limits>
#include <map>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

const snapshot::Option* option(const SnapshotStore& store, const std::string& name) {
  for (const auto& o : store.options()) {
    if (o.name() == name) return &o;
  }
  return nullptr;
}

bool breaksOnNan(const SnapshotStore& store) {
  const auto& all = store.breakpoints();
  return std::any_of(all.begin(), all.end(), [](const auto& b) { return b.nan() && b.enabled(); });
}

}  // namespace

class LiveTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void optionsAreTakenBetweenTheStepsOfARun_data() {
    QTest::addColumn<bool>("fullSpeed");
    QTest::newRow("by instructions") << false;
    QTest::newRow("at full speed") << true;
  }
  void optionsAreTakenBetweenTheStepsOfARun() {
    QFETCH(bool, fullSpeed);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const auto steps = [&w] { return w->store().position().step(); };
    const auto apart = [](const snapshot::Option* o, const char* value) {
      return o && o->value() == value && o->effect() != "from the next step on";
    };
    const auto goesOn = [&](std::int64_t from) {
      return w.loop().wait([&] { return w->store().steps().back()->step() > from + 2; });
    };
    w.loop().act([&] { fullSpeed ? w->session().train(1'000'000) : w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() >= 2; }));
    QSignalSpy rebuilt(&w->session(), &ModelSession::planRebuilt);
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.inplace"), QStringLiteral("off")); });
    QVERIFY(w.loop().wait([&] { return option(w->store(), "memory.inplace")->value() == "off"; }));
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.reuse"), QStringLiteral("off")); });
    QVERIFY(w.loop().wait([&] {
      return !rebuilt.isEmpty() && apart(option(w->store(), "memory.inplace"), "off") &&
             apart(option(w->store(), "memory.reuse"), "off");
    }));
    QVERIFY2(w->session().running(), "a change of options ends no run");
    QVERIFY(goesOn(steps()));
    // Both are taken back, also while it runs.
    w.loop().act([&] { w->actions()[QStringLiteral("undo")]->trigger(); });
    w.loop().act([&] { w->actions()[QStringLiteral("undo")]->trigger(); });
    QVERIFY(w.loop().wait([&] {
      return apart(option(w->store(), "memory.inplace"), "on") && apart(option(w->store(), "memory.reuse"), "on");
    }));
    QVERIFY(w->session().running());
    QVERIFY(goesOn(steps()));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
  }

  // What cannot be is told, and the option stands as it was.
  void anOptionThatIsRefusedShowsItsValueAgain() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const std::string before = option(w->store(), "memory.limit")->value();
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() >= 2; }));
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.limit"), QStringLiteral("a lot")); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY(w.settled());
    QCOMPARE(option(w->store(), "memory.limit")->value(), before);
    QVERIFY2(!w->actions()[QStringLiteral("undo")]->isEnabled(), "what was refused cannot be taken back");
    QVERIFY(!w->session().running());
    QVERIFY(w->actions()[QStringLiteral("run")]->isEnabled());
  }

  // Each cancels what is being set for the one before it; all of them are taken, and the run goes on.
  void changesThatOvertakeEachOtherAreAllTaken() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() >= 2; }));
    std::map<std::string, std::string> wanted;
    QStringList lies;  // what was shown meanwhile and nobody wants
    QObject::connect(&w->store(), &SnapshotStore::optionsChanged, &w->session(), [&] {
      for (const auto& [name, value] : wanted)
        if (const auto& shown = option(w->store(), name)->value(); shown != value)
          lies << QStringLiteral("%1 = %2").arg(QString::fromStdString(name), QString::fromStdString(shown));
    });
    for (int round = 0; round < 12; ++round)
      for (const char* name : {"memory.inplace", "memory.reuse", "pass.cse"}) {
        const QString value = round % 2 == 0 ? QStringLiteral("off") : QStringLiteral("on");
        w.loop().act([&] {
          wanted[name] = value.toStdString();
          w->session().setOptions({{QLatin1String(name), value}});
        });
        const int until = 3 * round;  // at other moments of the builds
        QElapsedTimer since;
        since.start();
        QVERIFY(w.loop().wait([&] { return since.elapsed() >= until; }));
      }
    const std::int64_t from = w->store().steps().back()->step();
    QVERIFY(w.loop().wait([&] { return w->store().steps().back()->step() > from + 2; }));
    for (const char* name : {"memory.inplace", "memory.reuse", "pass.cse"}) {
      QVERIFY(w.loop().wait([&] { return option(w->store(), name)->effect() != "from the next step on"; }));
      QCOMPARE(option(w->store(), name)->value(), std::string("on"));
    }
    QVERIFY2(lies.isEmpty(), qPrintable(lies.join(QStringLiteral("; "))));
    QVERIFY(w->session().running());
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
  }

  // A model that makes thousands of steps a second: the window stays free, and stops where it is asked to.
  void aFastModelDoesNotRunAheadOfTheWindow() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    WindowDriver w;
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    w.loop().act([&] { w->openAndBuild(QStringLiteral("/nowhere/made_up.onnx"), {}); });
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    QVERIFY(w.settled());
    w.view(QStringLiteral("training"));
    w.loop().forget();
    w.loop().act([&] { w->session().train(5000); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().series().size(), std::size_t{5000});
    QCOMPARE(w->store().position().step(), 5000);
    QVERIFY(w->store().steps().size() < 3000);
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() > 6000; }));
    QVERIFY(w->session().running());
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    // Nothing comes after it stands.
    const std::size_t then = w->store().series().size();
    QCOMPARE(w->store().position().step(), static_cast<std::int64_t>(then));
    QVERIFY(!w->session().running());
    QElapsedTimer timer;
    timer.start();
    w.loop().wait([&timer] { return timer.elapsed() > 300; });
    QCOMPARE(w->store().series().size(), then);
    QVERIFY_LOOP(w);
  }

  // Who writes the project file is slower: no further steps are made, and a pause ends the run all the same.
  void aRunWaitsForWhoTakesItsSteps() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    bool held = false;
    int asked = 0;
    w->session().setHold([&] { return ++asked > 0 && held; });
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() > 3; }));
    held = true;
    const int before = asked;
    QVERIFY(w.loop().wait([&] { return asked > before + 3; }));
    const std::size_t then = w->store().series().size();
    const int later = asked;
    QVERIFY(w.loop().wait([&] { return asked > later + 10; }));
    QCOMPARE(w->store().series().size(), then);
    QVERIFY(w->session().running());
    held = false;
    QVERIFY(w.loop().wait([&] { return w->store().series().size() > then + 3; }));
    held = true;
    const int again = asked;
    QVERIFY(w.loop().wait([&] { return asked > again + 3; }));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.loop().wait([&] { return !w->session().running(); }));
    QVERIFY(w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY_DONE(w.act("step"), w);
    QCOMPARE(w.instruction(), 1);
  }

  void aModelOpenedDuringARunTakesItsPlace() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.inplace"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    QVERIFY(w->actions()[QStringLiteral("undo")]->isEnabled());
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() >= 2; }));
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY2(w->notice().text().contains(QStringLiteral("is running, at step")), qPrintable(w->notice().text()));
    w.loop().act([&] { w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->session().modelPath() == bundledModels()[1].model && w->session().built(); }));
    QVERIFY(w.settled());
    QVERIFY(w->store().steps().empty());
    QVERIFY(!w->session().running());
    QVERIFY(breaksOnNan(w->store()));
    QVERIFY2(!w->actions()[QStringLiteral("undo")]->isEnabled(), "options of the other model");
    QVERIFY_DONE(w.act("step"), w);
    QCOMPARE(w.instruction(), 1);
  }

  // Before anything is open, too: the start page tells what the machine has, once there is a worker to ask.
  void aWorkerThatWasNotThereIsStartedAgain() {
    qputenv("STEPSCOPE_WORKER", "/nowhere/stepscope");
    WindowDriver w;
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }, 20'000));
    QVERIFY2(w->notice().text().contains(QStringLiteral("/nowhere/stepscope")) &&
                 !w->notice().text().contains(QStringLiteral("same step")),
             qPrintable(w->notice().text()));
    QVERIFY(!w->store().machine());
    w->session().client().setCommand(QStringLiteral(REAL_WORKER), {QStringLiteral("worker")});
    auto* restart = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY(restart && restart->isVisible());
    w.loop().act([restart] { restart->click(); });
    QVERIFY(w.loop().wait([&] { return w->store().machine() != nullptr; }, 20'000));
    QVERIFY(!w->notice().isProblem());
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
  }

  // What an earlier step was warned of stays when the worker that told it dies.
  void alertsOfStepsSurviveTheirWorker() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const std::size_t before = w->store().alerts().size();
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::WARNING);
    alert.set_code("made_up");
    alert.set_message("told in step 0");
    alert.set_step(0);
    w->store().addAlert(alert);
    QVERIFY(!childProcesses().empty());
    kill(childProcesses().front(), SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }, 20'000));
    QVERIFY_DONE(w.act("restart"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy() && w->store().position().step() == 1; },
                          60'000));
    QVERIFY(w.settled());
    QCOMPARE(w->store().alerts().size(), before + 1);
    const auto& all = w->store().alerts();
    QCOMPARE(std::count_if(all.begin(), all.end(), [](const auto& a) { return a.code() == "made_up"; }), 1);
  }

  void aProjectThatIsLookedAtLeavesTheBreaks() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().toggleBreakpoint(3); });
    QVERIFY(w.recorded());
    const QString project = w->store().project().projectPath();
    w.loop().act([&] { w->session().close(); });
    QVERIFY(breaksOnNan(w->store()));
    QVERIFY(w->store().options().empty());
    QVERIFY(w.recorded());
    QVERIFY_DONE(w.openRecorded(project), w);
    QVERIFY(breaksOnNan(w->store()));
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY(breaksOnNan(w->store()));
    QCOMPARE(w->store().breakpoints().size(), std::size_t{2});  // NaN and Inf; that of an instruction was the old model's
  }

  // A pass that adds nodes took none away, and an alert that is about none leads to none.
  void whatTheEngineTellsNamesNothingThatIsNotSo() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const auto* layouts = option(w->store(), "pass.assign_layouts");
    QVERIFY2(layouts && layouts->effect().find("nodes more") != std::string::npos,
             layouts ? layouts->effect().c_str() : "none");
    QVERIFY_DONE(w.act("step_whole"), w);
    for (const auto& alert : w->store().alerts())
      QVERIFY2(alert.value() == -1 && alert.instruction() == -1, alert.code().c_str());
  }

  // Killed at any step, it comes back at that step and goes on to the end of what was asked for; no step is recorded twice.
  void aTrainingWhoseWorkerDiesGoesOnWhereItWas() {
    constexpr int kSteps = 12'000, kKilledAfter = 7'000;
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    std::vector<int> times(kSteps, 0);
    QObject::connect(&w->session(), &ModelSession::stepRecorded, &w->session(), [&times](const StepPtr& step) {
      if (step->step() < kSteps) ++times[static_cast<std::size_t>(step->step())];
    });
    w.loop().act([&] { w->session().train(kSteps); });
    QVERIFY(w.loop().wait([&] { return !w->store().steps().empty() && w->store().steps().back()->step() >= kKilledAfter; },
                          300'000));
    QVERIFY(!w->store().steps().back()->every_value());
    QVERIFY(w->session().running());
    kill(childProcesses().front(), SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
    const QString where = w->findChild<QLabel*>(QStringLiteral("status_where"))->text();
    QVERIFY2(where.contains(QStringLiteral("Stopped")), qPrintable(where));  // nothing is ready without a worker
    const std::int64_t reached = w->store().steps().back()->step();
    QVERIFY(reached + 1 < kSteps);
    w.loop().act([&] { w->actions()[QStringLiteral("restart")]->trigger(); });
    QVERIFY(w.loop().wait(
        [&] { return w->store().position().step() == kSteps && !w->session().running() && !w->session().busy(); }, 300'000));
    QCOMPARE(std::count(times.begin(), times.end(), 1), std::ptrdiff_t{kSteps});
  }

  // F5 lasts until something stops it: a worker that dies does, and the next one stands where it died and waits. That an
  // option made another plan just before belongs to the worker that is gone.
  void aRunWhoseWorkerDiesIsThereAgainAndWaits() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    for (int round = 0; round < 3; ++round) {
      const std::size_t before = w->store().series().size();
      w.loop().act([&] { w->actions()[QStringLiteral("run")]->trigger(); });
      QVERIFY(w.loop().wait([&] { return w->store().series().size() >= before + 20; }));
      QVERIFY2(w->store().steps().back()->every_value(), "F5 looks at every value");
      w.loop().act([&] {
        emit w->wishes().setOption(QStringLiteral("pass.cse"), round == 1 ? QStringLiteral("on") : QStringLiteral("off"));
      });
      for (int i = 0; i < 10 * round; ++i) QTest::qWait(1);  // before, in and after the build
      kill(childProcesses().front(), SIGKILL);
      QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
      const std::int64_t reached = w->store().steps().back()->step() + 1;
      QCOMPARE(w->store().position().step(), reached);
      QVERIFY_DONE(w.act("restart"), w);
      QVERIFY(w.loop().wait(
          [&] { return w->session().built() && !w->session().busy() && w->store().position().step() == reached; }, 60'000));
      QVERIFY(w.settled());
      QTest::qWait(300);
      QVERIFY(!w->session().running());
      QCOMPARE(w->store().position().step(), reached);
      QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
      QVERIFY_DONE(w.act("step_whole"), w);
      QCOMPARE(w->store().position().step(), reached + 1);
    }
  }

  void aStopAtANanSaysSoAndShowsWhatMadeIt() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.select(Selection::ofInstruction(2)));
    const int poisoned = w->selection().selection().value;
    w.loop().act([&] { w->session().editTensor(poisoned, {}, std::numeric_limits<double>::quiet_NaN(), true); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("run"), w);
    const auto& p = w->store().position();
    QVERIFY(p.in_step() && p.breakpoint() != 0);
    QVERIFY2(w->notice().isStop() && w->notice().text().contains(QStringLiteral("NaN")), qPrintable(w->notice().text()));
    const int maker = p.instruction() - 1;
    QCOMPARE(w->selection().selection().instruction, maker);
    QVERIFY(w.shownTensor() && w.shownTensor()->statistics().nan() > 0);
    // The alerts lead there too, and still do when the step was built anew.
    const auto& alerts = w->store().alerts();
    QVERIFY(std::any_of(alerts.begin(), alerts.end(), [&](const auto& a) {
      return a.code() == "nan" && a.instruction() == maker && a.step() == p.step();
    }));
    QVERIFY(w.select(Selection::ofInstruction(0)));
    for (int i = 0; i < 5 && w->selection().selection().instruction != maker; ++i) QVERIFY_DONE(w.act("next_alert"), w);
    QCOMPARE(w->selection().selection().instruction, maker);
    // The next move takes the message away, once it is seen to be one.
    QVERIFY_DONE(w.act("abandon"), w);
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return !w->notice().isVisible() && w->store().steps().size() >= 2; }));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
  }
};

SS_QT_CLASS(QApplication, LiveTest)
#include "tst_live.moc"
