// SPDX-License-Identifier: GPL-3.0-or-later
// Where modes meet: a build that is cancelled or loses its worker while a step is paused, an option that is changed while
// the worker dies, another set-up after a rewind. Each ends in the session that was there; with the real worker.
#include <signal.h>

#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <utility>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

constexpr int kPlace = 12, kOther = 5;

QString value(WindowDriver& w, const char* name) {
  for (const auto& o : w->store().options())
    if (o.name() == name) return QString::fromStdString(o.value());
  return {};
}

SetUpDialog* shownSetUp(WindowDriver& w) {
  SetUpDialog* shown = nullptr;
  w.loop().wait(
      [&] {
        for (auto* dialog : w->findChildren<SetUpDialog*>())
          if (dialog->isVisible()) shown = dialog;
        return shown != nullptr;
      },
      10'000);
  return shown;
}

// Asks for a build with gradients of two steps added up.
bool askForAnotherSetUp(WindowDriver& w) {
  w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
  SetUpDialog* dialog = shownSetUp(w);
  if (!dialog) return false;
  dialog->findChild<QLineEdit*>(QStringLiteral("set_up_accumulate"))->setText(QStringLiteral("2"));
  w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
  return w.loop().wait([&] { return w->session().busy(); }, 10'000);
}

bool restart(WindowDriver& w) {
  auto* button = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
  if (!button || !button->isVisible()) return false;
  w.loop().act([button] { button->click(); });
  return w.loop().wait([&] { return w->store().workerState() == WorkerState::kIdle && !w->session().busy(); }) &&
         w.settled();
}

}  // namespace

class ModesTest : public QObject {
  Q_OBJECT

  const QTemporaryDir folder_;
  std::vector<double> undisturbed_;  // losses of a run that nothing happens to

  // Two steps, and a third that is paused at kPlace with the value that the instruction before it made.
  bool pausedInTheThirdStep(WindowDriver& w, std::string& bits) {
    if (!w.build(bundledModels()[0]) || !w.act("step_whole") || !w.act("step_whole")) return false;
    w.loop().act([&] { w->session().runTo(kPlace); });
    if (!w.settled() || !w.select(Selection::ofInstruction(kPlace - 1)) || !w.shownTensor()) return false;
    bits = w.shownTensor()->data();
    return w.instruction() == kPlace && !bits.empty();
  }

  // Of another run that stands at step kOther; empty where there is none.
  QString otherState() {
    const QString path = folder_.filePath(QStringLiteral("other.safetensors"));
    const QStringList arguments{QStringLiteral("train"),   bundledModels()[0].model,
                                QStringLiteral("--data"),  bundledModels()[0].data,
                                QStringLiteral("--steps"), QString::number(kOther),
                                QStringLiteral("--lr"),    QStringLiteral("0.2"),
                                QStringLiteral("--save"),  path};
    QProcess run;
    run.start(QString::fromLatin1(REAL_WORKER), arguments);
    return run.waitForFinished() && run.exitCode() == 0 ? path : QString();
  }

  // The settings of now, and these.
  void buildWith(WindowDriver& w, const std::vector<std::pair<std::string, std::string>>& settings) {
    snapshot::Configure configuration = w->session().configuration();
    for (const auto& [name, value] : settings) {
      auto* setting = configuration.add_settings();
      setting->set_name(name);
      setting->set_value(value);
    }
    w.loop().act([&] { w->session().build(configuration); });
  }

  // It stands where it stood, with the values it had, and goes on as if nothing had been.
  void goesOn(WindowDriver& w, const std::string& bits) {
    QVERIFY(w->session().built());
    QVERIFY(w->store().position().in_step());
    QCOMPARE(w->store().position().step(), 2);
    QCOMPARE(w.instruction(), kPlace);
    QCOMPARE(value(w, "accumulate"), QStringLiteral("1"));
    QVERIFY(w.select(Selection::ofInstruction(kPlace - 2)));
    QVERIFY(w.select(Selection::ofInstruction(kPlace - 1)));
    QVERIFY(w.shownTensor());
    QVERIFY2(w.shownTensor()->data() == bits, "the value at the place differs");
    QCOMPARE(w->store().steps().size(), std::size_t{2});
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    for (std::size_t i = 0; i < undisturbed_.size(); ++i) QCOMPARE(w->store().series().loss()[i], undisturbed_[i]);
    QVERIFY_LOOP(w);
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    for (int i = 0; i < 4; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    undisturbed_.assign(w->store().series().loss().begin(), w->store().series().loss().end());
    QCOMPARE(undisturbed_.size(), std::size_t{4});
  }

  void aCancelledSetUpLeavesThePausedStep() {
    WindowDriver w;
    std::string bits;
    QVERIFY_DONE(pausedInTheThirdStep(w, bits), w);
    const pid_t worker = childProcesses().front();
    const auto plan = w->store().plan();
    const auto phases = w->store().phases().size();
    kill(worker, SIGSTOP);  // it is in the middle of it
    QVERIFY(askForAnotherSetUp(w));
    w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_Escape); });
    kill(worker, SIGCONT);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY2(w->store().plan() == plan && w->store().phases().size() == phases, "nothing is built again");
    goesOn(w, bits);
  }

  // The plan of before has given up its memory by then, and the parameters are held in another type.
  void aCancelAfterMemoryWasTakenLeavesThePausedStep() {
    WindowDriver w;
    std::string bits;
    QVERIFY_DONE(pausedInTheThirdStep(w, bits), w);
    bool measures = false;
    QObject::connect(&w->session(), &ModelSession::stageBegan, &w->session(),
                     [&](const QString& name) { measures |= name == u"measure peak"; });
    buildWith(w, {{"accumulate", "2"}, {"precision", "bf16"}, {"roofline", "on"}, {"cache.dir", "off"}});
    QVERIFY(w.loop().wait([&] { return measures; }));
    w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_Escape); });
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QCOMPARE(value(w, "precision"), QStringLiteral("fp32"));
    goesOn(w, bits);
  }

  // Whether the worker was still building or had built, at a paused step or before the first one: the state that was loaded
  // for the set-up is gone with it.
  void aCancelledSetUpLeavesTheStateThatWasThere_data() {
    QTest::addColumn<QString>("at");
    QTest::addColumn<bool>("paused");
    for (const char* at : {"gradient", "built"})
      for (const bool paused : {true, false}) QTest::addRow("%s, %s", at, paused ? "paused" : "step 0") << at << paused;
  }

  void aCancelledSetUpLeavesTheStateThatWasThere() {
    QFETCH(QString, at);
    QFETCH(bool, paused);
    WindowDriver w;
    std::string bits;
    if (paused) QVERIFY_DONE(pausedInTheThirdStep(w, bits), w);
    if (!paused) QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const QString file = otherState();
    QVERIFY(!file.isEmpty());
    bool cancelled = false;
    const auto cancel = [&] {
      if (!std::exchange(cancelled, true)) w->session().pause();
    };
    QObject::connect(&w->session(), &ModelSession::stageBegan, &w->session(), [&](const QString& name) {
      if (name == at) cancel();
    });
    buildWith(w, {{"start-state", file.toStdString()}});
    if (at == u"built") QObject::connect(&w->store(), &SnapshotStore::phasesChanged, &w->session(), cancel);
    QVERIFY(w.loop().wait([&] { return cancelled && w->session().built() && !w->session().busy(); }) && w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY2(!w->store().building(), "what was there stands");
    const snapshot::Configure& now = w->session().configuration();
    for (const auto& s : now.settings()) QVERIFY2(s.name() != "start-state", "the settings are those of before");
    if (paused) return goesOn(w, bits);
    QCOMPARE(w->store().position().step(), 0);
    QVERIFY(w->store().steps().empty());
    for (std::size_t i = 0; i < undisturbed_.size(); ++i) QVERIFY_DONE(w.act("step_whole"), w);
    for (std::size_t i = 0; i < undisturbed_.size(); ++i) QCOMPARE(w->store().series().loss()[i], undisturbed_[i]);
    QVERIFY_LOOP(w);
  }

  // Not cancelled, the run goes on from that state: no step, edit or kept state of the one before leads there.
  void aStartStateTakesThePlaceOfWhatRan() {
    WindowDriver w;
    std::string bits;
    QVERIFY_DONE(pausedInTheThirdStep(w, bits), w);
    for (int i = 0; i < 6; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    const QString file = otherState();
    QVERIFY(!file.isEmpty());
    buildWith(w, {{"start-state", file.toStdString()}});
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == kOther && !w->session().busy(); }) && w.settled());
    QVERIFY2(w->store().steps().back()->step() < kOther, "no step is shown that is still to come");
    QVERIFY_DONE(w.act("step_whole"), w);
    const double loss = w->store().steps().back()->loss();
    // It is the same again after its worker died, and after a rewind.
    kill(childProcesses().front(), SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
    QVERIFY(restart(w));
    QCOMPARE(w->store().position().step(), kOther + 1);
    w.loop().act([&] { w->session().rewind(kOther); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), kOther);
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().steps().back()->loss(), loss);
  }

  void aWorkerKilledInABuildComesBackToThePausedStep() {
    WindowDriver w;
    std::string bits;
    QVERIFY_DONE(pausedInTheThirdStep(w, bits), w);
    const pid_t worker = childProcesses().front();
    kill(worker, SIGSTOP);
    QVERIFY(askForAnotherSetUp(w));
    kill(worker, SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
    QVERIFY(w->notice().isProblem() && w->store().plan());
    QVERIFY2(!w->store().building(), "nobody builds any more");
    QVERIFY(restart(w));
    goesOn(w, bits);
  }

  void aWorkerKilledInAFirstBuildLeavesItsSetUp() {
    WindowDriver w;
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    dialog->findChild<QLineEdit*>(QStringLiteral("set_up_accumulate"))->setText(QStringLiteral("3"));
    QVERIFY(w.loop().wait([&] { return w->store().graph() != nullptr; }));  // it comes behind the set-up
    const pid_t worker = childProcesses().front();
    kill(worker, SIGSTOP);
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->session().busy(); }));
    kill(worker, SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
    QVERIFY2(w->notice().isProblem() && !w->session().built() && !w->store().building(), qPrintable(w->notice().text()));
    QVERIFY2(w->store().graph(), "the graph of the model stays to look at");
    QVERIFY(restart(w));
    if (!w->session().built()) {
      dialog = shownSetUp(w);
      QVERIFY(dialog);
      QCOMPARE(dialog->findChild<QLineEdit*>(QStringLiteral("set_up_accumulate"))->text(), QStringLiteral("3"));
      w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
      QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    }
    QCOMPARE(value(w, "accumulate"), QStringLiteral("3"));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_LOOP(w);
  }

  // Run (F5) has no goal: it comes back to where it was and stands there, whatever the worker was about to tell.
  void aRunThatLosesItsWorkerStandsWhereItCameTo_data() {
    QTest::addColumn<QString>("sample");
    for (const char* sample : {"digits", "padding"}) QTest::newRow(sample) << QString::fromLatin1(sample);
  }
  void aRunThatLosesItsWorkerStandsWhereItCameTo() {
    QFETCH(QString, sample);
    const QString folder = QStringLiteral(SOURCE_FOLDER "/app/samples/") + sample;
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt({sample, folder + QStringLiteral("/model.onnx"), folder + QStringLiteral("/batches.npz")}), w);
    if (sample == u"padding") {
      w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("pass.eliminate_padding"), QStringLiteral("on")); });
      QVERIFY(w.settled());
    }
    const auto* where = w->findChild<QLabel*>(QStringLiteral("status_where"));
    for (int time = 0; time < 3; ++time) {
      const std::size_t before = w->store().series().size();
      w.loop().act([&] { w->actions()[QStringLiteral("run")]->trigger(); });
      QVERIFY2(w.loop().wait([&] { return w->store().series().size() >= before + 5; }, 20'000),
               qPrintable(QStringLiteral("time %1: %2 steps, %3, %4")
                              .arg(time)
                              .arg(w->store().series().size())
                              .arg(where->text(), w->notice().text())));
      kill(childProcesses().front(), SIGKILL);
      QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
      const std::int64_t reached = w->store().steps().back()->step();
      const double loss = w->store().steps().back()->loss();
      const QString shown = w->findChild<QLabel*>(QStringLiteral("status_step"))->text();
      QVERIFY2(shown.contains(QString::number(reached + 1)), qPrintable(shown));
      QVERIFY(restart(w));
      QVERIFY2(!w->session().running(), qPrintable(where->text()));
      QVERIFY2(!w->notice().isProblem() && w->session().built(), qPrintable(w->notice().text()));
      QCOMPARE(w->store().position().step(), reached + 1);
      QVERIFY(!w->store().position().in_step());
      QCOMPARE(w->store().steps().back()->loss(), loss);
      QVERIFY_DONE(w.act("step_whole"), w);
      QCOMPARE(w->store().steps().back()->step(), reached + 1);
    }
    const auto& steps = w->store().series().step();
    for (std::size_t i = 0; i < steps.size(); ++i) QCOMPARE(steps[i], static_cast<std::int64_t>(i));
    QVERIFY_LOOP(w);
  }

  // Asked for while it ran, and the worker died before it could take it.
  void anOptionOfARunSurvivesItsWorker() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(100'000); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() >= 4; }));
    const pid_t worker = childProcesses().front();
    kill(worker, SIGSTOP);
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.inplace"), QStringLiteral("off")); });
    kill(worker, SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
    const std::int64_t reached = w->store().steps().back()->step();
    QVERIFY(w->notice().isProblem());
    auto* button = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY(button && button->isVisible());
    w.loop().act([button] { button->click(); });
    QVERIFY(w.loop().wait(
        [&] { return w->store().workerState() != WorkerState::kDead && w->store().steps().back()->step() > reached + 2; }));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QCOMPARE(value(w, "memory.inplace"), QStringLiteral("off"));
    for (std::size_t i = 0; i < undisturbed_.size(); ++i) QCOMPARE(w->store().series().loss()[i], undisturbed_[i]);
    const auto& steps = w->store().series().step();
    for (std::size_t i = 0; i < steps.size(); ++i) QCOMPARE(steps[i], static_cast<std::int64_t>(i));
    QVERIFY_LOOP(w);
  }

  // Nothing of the steps that the rewind took back, nor of the plan before, is shown as of now.
  void anotherSetUpAfterARewindShowsNothingOfBefore() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.reuse"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    for (int i = 0; i < 5; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().rewind(2); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 2);
    QVERIFY(askForAnotherSetUp(w));
    QVERIFY(w.loop().wait([&] { return value(w, "accumulate") == u"2" && !w->session().busy(); }) && w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QCOMPARE(value(w, "memory.reuse"), QStringLiteral("off"));
    QVERIFY(!w->store().position().in_step());
    const std::int64_t at = w->store().position().step();
    QVERIFY2(at == 0 || at == 2, qPrintable(QString::number(at)));
    QCOMPARE(w->store().series().size(), static_cast<std::size_t>(at));
    QVERIFY(!w->store().findings().optionProof());
    for (int i = 0; i < w->store().plan()->size(); ++i) QVERIFY(w->store().timing(i).step < at);
    for (const auto& value : w->store().graph()->graph().values()) QVERIFY(w->store().statisticsStep(value.id()) < at);
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().steps().back()->step(), at);
    QCOMPARE(w->store().steps().back()->loss(), undisturbed_[static_cast<std::size_t>(at)]);
    QVERIFY2(!w->store().steps().back()->updated() || at % 2 == 1, "gradients of two steps are added up");
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(QApplication, ModesTest)
#include "tst_modes.moc"
