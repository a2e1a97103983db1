// SPDX-License-Identifier: GPL-3.0-or-later
// A training that goes on after its window was closed, after another set-up, and with a state that was saved: where it
// begins, and what the list of runs says of it.
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTest>
#include <cstring>

#include "app/workbench/kept_training.h"
#include "app/workbench/recent_files.h"
#include "storage/queries.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/graph_values.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

class KeptTrainingTest : public QObject {
  Q_OBJECT

  static constexpr int kInstruction = 16;  // of a step that is begun

  QTemporaryDir folder_;
  std::vector<double> undisturbed_;  // losses

  QString project(const char* name) const { return folder_.filePath(QLatin1String(name) + QStringLiteral(".stepscope")); }

  // As a person does it; until the window is gone.
  static bool close(WindowDriver& w) {
    w.loop().act([&] { w->close(); });
    return w.loop().wait([&] { return !w->isVisible(); });
  }

  static const RunEntry& newestRun(WindowDriver& w) {
    w.loop().act([&] { w->recording().queries().refreshRuns(); });
    w.settled();
    return w->store().project().runs().back();
  }

  static QString weightsOf(const RunEntry& run) { return run.settings.at(QStringLiteral("weights")); }

  // It came there and does nothing more.
  static bool stands(WindowDriver& w, std::int64_t step, bool inStep) {
    return w.loop().wait([&] {
      const auto& p = w->store().position();
      const bool there = p.step() == step && p.in_step() == inStep && (!inStep || p.instruction() == kInstruction);
      return there && !w->session().busy();
    }) && w.settled();
  }

  static bool built(WindowDriver& w) {
    return w.loop().wait([&] { return w->session().built() && !w->session().busy() && !w->store().building(); }) &&
           w.settled();
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(12); });
    QVERIFY(w.recorded());
    for (const double loss : w->store().series().loss()) undisturbed_.push_back(loss);
    QCOMPARE(undisturbed_.size(), 12u);
  }

  // Between two steps, and in the middle of one.
  void aClosedTrainingGoesOn_data() {
    QTest::addColumn<bool>("inStep");
    QTest::addColumn<bool>("fromProject");
    QTest::newRow("between steps, from the model") << false << false;
    QTest::newRow("in a step, from the project") << true << true;
  }
  void aClosedTrainingGoesOn() {
    QFETCH(bool, inStep);
    QFETCH(bool, fromProject);
    const QString path = project(QTest::currentDataTag());
    {
      WindowDriver w;
      w->setProjectPath(path);
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      w.loop().act([&] { w->session().train(6); });
      QVERIFY(w.recorded());
      if (inStep) {
        w.loop().act([&] { w->session().runTo(kInstruction); });
        QVERIFY(w.settled());
      }
      QVERIFY(close(w));
    }
    QString problem;
    const auto place = KeptTraining::find(path, 1, &problem);
    QVERIFY2(place, qPrintable(problem));
    QCOMPARE(place->step, 6);
    WindowDriver w;
    w->setProjectPath(path);
    if (fromProject)
      QVERIFY_DONE(w.openRecorded(path), w);
    else
      QVERIFY_DONE(w.open(bundledModels()[0].model), w);
    QVERIFY(w->notice().isStop());
    QVERIFY2(w->notice().text().contains(QStringLiteral("left at step 6 of run 1")), qPrintable(w->notice().text()));
    w.picture(fromProject ? QStringLiteral("offered-in-a-project") : QStringLiteral("offered-beside-the-set-up"));
    QVERIFY_DONE(w.act("continue_run"), w);
    QVERIFY(built(w));
    QVERIFY(stands(w, 6, inStep));
    QVERIFY(!w->notice().isStop() && !w->notice().isProblem());
    w.loop().act([&] { w->session().train(inStep ? 5 : 6); });
    QVERIFY(w.recorded());
    QCOMPARE(w->store().position().step(), 12);
    const auto& loss = w->store().series().loss();
    QCOMPARE(loss.size(), 6u);
    for (std::size_t i = 0; i < loss.size(); ++i) QCOMPARE(loss[i], undisturbed_[6 + i]);
    QCOMPARE(newestRun(w).id, 2);
    QCOMPARE(weightsOf(newestRun(w)), QStringLiteral("from run 1 at step 6"));
    QCOMPARE(newestRun(w).firstLoss, undisturbed_[6]);
    w.picture(QStringLiteral("continued"));
    // It comes there again when its worker dies before a state of its own is kept, and goes back within itself.
    w.loop().act([&] { w->session().rewind(8); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().series().loss().back(), undisturbed_[8]);
    QVERIFY_LOOP(w);
  }

  // Another model in its place is like a window that is closed: what was trained is kept, and goes on when it is opened
  // again.
  void anotherModelInItsPlaceKeepsTheTraining() {
    const QString path = project("replaced");
    WindowDriver w;
    w->setProjectPath(path);
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(6); });
    QVERIFY(w.recorded());
    const auto buildOther = [&w] {
      SetUpDialog* dialog = w.open(bundledModels()[1].model);
      if (!dialog) return false;
      w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
      return w.loop().wait([&] { return w->session().modelPath() == bundledModels()[1].model && w->session().built(); }) &&
             w.settled();
    };
    QVERIFY(buildOther());
    QVERIFY(!w->notice().isStop() && !w->notice().isProblem());
    const auto place = KeptTraining::find(path, 1);
    QVERIFY(place);
    QCOMPARE(place->step, 6);
    QCOMPARE(place->path, bundledModels()[0].model);
    QVERIFY_DONE(w.open(bundledModels()[0].model), w);
    QVERIFY2(w->notice().isStop() && w->notice().text().contains(QStringLiteral("left at step 6 of run 1")),
             qPrintable(w->notice().text()));
    w.picture(QStringLiteral("offered-beside-another-model"));
    QVERIFY_DONE(w.act("continue_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().modelPath() == bundledModels()[0].model && w->session().built(); }));
    QVERIFY(stands(w, 6, false));
    w.loop().act([&] { w->session().train(6); });
    QVERIFY(w.recorded());
    QCOMPARE(w->store().series().loss().back(), undisturbed_[11]);
    // A run that is on is ended only when a person agrees, and is kept then too.
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().position().step() >= 20; }));
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY(dialog);
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY2(w->notice().text().contains(QStringLiteral("is running, at step")), qPrintable(w->notice().text()));
    w.loop().act([&] { w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->session().modelPath() == bundledModels()[1].model && w->session().built(); }));
    QVERIFY(w.settled());
    const auto kept = KeptTraining::find(path, 0);  // the newest
    QVERIFY(kept && kept->step >= 20);
  }

  // What was set by hand comes back with the place, and the step that ends with it says so in the run that goes on.
  void whatWasSetByHandComesBack_data() {
    QTest::addColumn<int>("steps");
    QTest::addColumn<bool>("inStep");
    QTest::newRow("set in a step") << 3 << true;
    QTest::newRow("set between steps") << 3 << false;
    QTest::newRow("set in the first step") << 0 << true;
  }
  void whatWasSetByHandComesBack() {
    QFETCH(int, steps);
    QFETCH(bool, inStep);
    const QString path = project(QTest::currentDataTag());
    int parameter = -1;
    const auto edit = [&](WindowDriver& w) {
      parameter = valueOf(w, [](const auto& v) { return v.role() == snapshot::INITIALIZER && v.trained(); });
      if (steps > 0) w.loop().act([&] { w->session().train(steps); });
      if (!w.recorded()) return false;
      if (inStep) w.loop().act([&] { w->session().runTo(kInstruction); });
      if (!w.settled() || w->store().position().in_step() != inStep) return false;
      w.loop().act([&] { w->session().editElement(parameter, {0, 0, 0, 0}, 3, 0.25); });
      return w.settled();
    };
    std::vector<double> losses;
    const auto twoMore = [&](WindowDriver& w) {
      return w.act("step_whole") && w.act("step_whole") && w.recorded() && w->store().steps().size() >= 2;
    };
    {
      WindowDriver w;
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      QVERIFY(edit(w));
      QVERIFY_DONE(twoMore(w), w);
      losses = w->store().series().loss();
      losses.erase(losses.begin(), losses.end() - 2);
      QVERIFY(losses[1] != undisturbed_[static_cast<std::size_t>(steps) + 1]);
    }
    {
      WindowDriver w;
      w->setProjectPath(path);
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      QVERIFY(edit(w));
      QVERIFY(close(w));
    }
    WindowDriver w;
    w->setProjectPath(path);
    QVERIFY_DONE(w.openRecorded(path), w);
    const QString told = w->notice().text();
    QVERIFY2(told.contains(QStringLiteral("left at step %1 of run 1").arg(steps)), qPrintable(told));
    QCOMPARE(told.contains(QStringLiteral("before instruction %1").arg(kInstruction)), inStep);
    QCOMPARE(told.contains(QStringLiteral("1 value that was set by hand")), inStep);
    w.picture(QTest::currentDataTag());
    QVERIFY_DONE(w.act("continue_run"), w);
    QVERIFY(built(w));
    QVERIFY(stands(w, steps, inStep));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY(w.select(Selection::ofValue(parameter)));
    float first = 0;
    const TensorPtr shown = w.shownTensor();
    QVERIFY(shown && shown->data().size() >= sizeof first);
    std::memcpy(&first, shown->data().data(), sizeof first);
    QCOMPARE(first, 3.0F);
    QVERIFY_DONE(twoMore(w), w);
    QCOMPARE(w->store().series().loss(), losses);
    QCOMPARE(newestRun(w).id, 2);
    std::vector<std::int64_t> edited;
    const auto written = [&] {
      edited.clear();
      const auto read = storage::Project::openReadOnly(path.toStdString());
      for (const auto& alert : storage::readAlerts(*read, 2).value())
        if (alert.code == "edited") edited.push_back(alert.step);
      return !edited.empty();
    };
    QVERIFY2(w.loop().wait(written, 10'000), "the run that goes on says what was set by hand");
    QCOMPARE(edited, std::vector<std::int64_t>{steps});
    // A worker that dies comes back to it too.
    w.loop().act([&] { w->session().rewind(steps); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().series().loss().back(), inStep ? undisturbed_[static_cast<std::size_t>(steps)] : losses[0]);
  }

  // An array from a file within the step is not kept: its value is named before anybody goes on, and the rest comes back.
  void whatIsNotKeptIsNamed() {
    const QString path = project("an array"), array = folder_.filePath(QStringLiteral("array.npy"));
    QString name;
    {
      WindowDriver w;
      w->setProjectPath(path);
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      const int parameter = valueOf(w, [](const auto& v) { return v.role() == snapshot::INITIALIZER && v.trained(); });
      name = QString::fromStdString(w->store().graph()->value(parameter)->name());
      w.loop().act([&] { w->session().train(2); });
      QVERIFY(w.recorded());
      w.loop().act([&] { w->session().saveTensor(parameter, array); });
      QVERIFY(w.loop().wait([&] { return QFileInfo::exists(array) && w->session().client().openRequests() == 0; }));
      w.loop().act([&] { w->session().runTo(kInstruction); });
      QVERIFY(w.settled());
      w.loop().act([&] { w->session().loadTensor(parameter, array); });
      QVERIFY(w.settled());
      QVERIFY(w->session().edited());
      QVERIFY(close(w));
    }
    WindowDriver w;
    w->setProjectPath(path);
    QVERIFY_DONE(w.openRecorded(path), w);
    const QString told = w->notice().text();
    QVERIFY2(told.contains(QStringLiteral("Not kept: what was loaded from a file into %1").arg(name)), qPrintable(told));
    QVERIFY2(!told.contains(QStringLiteral("set by hand")), qPrintable(told));
    QVERIFY_DONE(w.act("continue_run"), w);
    QVERIFY(built(w));
    QVERIFY(stands(w, 2, true));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().series().loss().back(), undisturbed_[2]);
  }

  // At full speed it stops at the end of a step first, and the run is not called finished.
  void aRunThatIsClosedIsCancelled() {
    const QString path = project("running");
    {
      WindowDriver w;
      w->setProjectPath(path);
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      w.loop().act([&] { w->session().train(1'000'000); });
      QVERIFY(w.loop().wait([&] { return w->store().position().step() > 20; }));
      QVERIFY(close(w));
    }
    const auto place = KeptTraining::find(path, 0);
    QVERIFY(place && place->step > 20);
    QCOMPARE(place->run, 1);
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(path), w);
    const RunEntry& run = w->store().project().runs().back();
    QCOMPARE(run.status, QStringLiteral("cancelled"));
    QCOMPARE(run.steps, place->step);
  }

  // The end of the desktop session: the same is kept before the session manager hears that it may go on, and the window
  // stays for an end that is called off.
  void aLogOutKeepsTheTrainingAndCanBeCalledOff() {
    const QString path = project("log-out");
    WindowDriver w;
    w->setProjectPath(path);
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w->leaveKeeping(30'000);  // nothing was trained
    QVERIFY(!KeptTraining::find(path, 0) && w->isVisible() && !w->notice().isVisible());
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().position().step() > 20; }));
    w->leaveKeeping(30'000);
    auto place = KeptTraining::find(path, 0);
    QVERIFY2(place, qPrintable(w->notice().text()));
    const std::int64_t step = w->store().position().step();
    QVERIFY(step > 20);
    QCOMPARE(place->step, step);
    QVERIFY(w->isVisible() && w->session().built() && !w->session().running());
    QVERIFY2(w->notice().isStop() && w->notice().text().contains(QStringLiteral("its state kept")),
             qPrintable(w->notice().text()));
    // Called off: it goes on, and the next end keeps what there is by then.
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), step + 3);
    QVERIFY(close(w));
    place = KeptTraining::find(path, 0);
    QVERIFY(place);
    QCOMPARE(place->step, step + 3);
  }

  // Nothing was trained: nothing is kept, and the window is gone at once.
  void whatWasNotTrainedIsNotKept() {
    const QString path = project("untouched");
    {
      WindowDriver w;
      w->setProjectPath(path);
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      w.loop().act([&] { w->close(); });
      QVERIFY(!w->isVisible());
    }
    QVERIFY(!KeptTraining::find(path, 0));
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(path), w);
    QVERIFY(!w->notice().isStop());
    QVERIFY(!w->actions()[QStringLiteral("continue_run")]->isEnabled());
  }

  // The newest three runs of a project; a place whose state is gone is not offered, one that is damaged is told.
  void whatIsKeptIsBounded() {
    const QString path = project("many");
    for (int i = 0; i < 5; ++i) {
      WindowDriver w;
      w->setProjectPath(path);
      QVERIFY_DONE(w.build(bundledModels()[0]), w);
      QVERIFY_DONE(w.act("step_whole"), w);
      QVERIFY(w.recorded());
      QVERIFY(close(w));
    }
    const QDir dir = QFileInfo(path).dir();
    QCOMPARE(dir.entryList({QStringLiteral("many.run-*.safetensors")}).size(), 3);
    QCOMPARE(dir.entryList({QStringLiteral("many.run-*.place.json")}).size(), 3);
    QVERIFY(!KeptTraining::find(path, 1) && KeptTraining::find(path, 3));
    QCOMPARE(KeptTraining::find(path, 0)->run, 5);
    QVERIFY(QFile::remove(dir.filePath(QStringLiteral("many.run-5.safetensors"))));
    QCOMPARE(KeptTraining::find(path, 0)->run, 4);
    QFile damaged(dir.filePath(QStringLiteral("many.run-4.place.json")));
    QVERIFY(damaged.resize(10));
    QString problem;
    KeptTraining::find(path, 4, &problem);
    QVERIFY2(problem.contains(QStringLiteral("many.run-4.place.json")), qPrintable(problem));
  }

  // Another set-up in the middle of a training: where it begins is asked, and either is a run of its own that says so.
  void anotherSetUpGoesOnOrBeginsAgain_data() {
    QTest::addColumn<bool>("again");
    QTest::newRow("goes on") << false;
    QTest::newRow("begins again") << true;
  }
  void anotherSetUpGoesOnOrBeginsAgain() {
    QFETCH(bool, again);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.recorded());
    newestRun(w);
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    auto* dialog = w->findChild<SetUpDialog*>();
    QVERIFY(dialog);
    auto* begin = dialog->findChild<QComboBox*>(QStringLiteral("set_up_begin"));
    QVERIFY(begin && begin->isVisible());
    QVERIFY(begin->itemText(0).contains(QStringLiteral("step 3")));
    w.picture(QStringLiteral("begins"));
    begin->setCurrentIndex(again ? 1 : 0);
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->store().building() || w->session().busy(); }));
    QVERIFY(built(w));
    QCOMPARE(w->store().position().step(), again ? 0 : 3);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    QCOMPARE(w->store().series().loss().back(), undisturbed_[again ? 0 : 3]);
    QCOMPARE(newestRun(w).id, 2);
    QCOMPARE(weightsOf(newestRun(w)), again ? QStringLiteral("from the model") : QStringLiteral("from run 1 at step 3"));
  }

  // A state of an earlier step of the same session, in the set-up: the training stands there, and its run says so.
  void aStateOfAnEarlierStepIsTakenUp() {
    const QString file = folder_.filePath(QStringLiteral("early.safetensors"));
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(2); });
    QVERIFY(w.recorded());
    w.loop().act([&] { w->session().saveState(file); });
    QVERIFY(w.loop().wait([&] { return QFileInfo::exists(file) && !w->session().busy(); }));
    w.loop().act([&] { w->session().train(4); });
    QVERIFY(w.recorded());
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    auto* dialog = w->findChild<SetUpDialog*>();
    QVERIFY(dialog);
    QVERIFY(w.loop().wait([&] { return dialog->findChild<QLineEdit*>(QStringLiteral("set_up_more_start-state")); }));
    dialog->findChild<QLineEdit*>(QStringLiteral("set_up_more_start-state"))->setText(file);
    QVERIFY2(!dialog->findChild<QComboBox*>(QStringLiteral("set_up_begin"))->isVisible(), "the file says where it begins");
    QVERIFY(dialog->findChild<QLabel*>(QStringLiteral("set_up_begins"))->text().contains(file));
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->store().building() || w->session().busy(); }));
    QVERIFY(built(w));
    QCOMPARE(w->store().position().step(), 2);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    QCOMPARE(w->store().steps().back()->loss(), undisturbed_[2]);
    QCOMPARE(weightsOf(newestRun(w)), QStringLiteral("from %1").arg(file));
  }

  // A set-up comes back without the state that it began with; that of a capture belongs to its model and stays.
  void aStateToBeginWithIsAskedForEachTime() {
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, folder_.path());
    const QString capture = folder_.filePath(QStringLiteral("captured"));
    QVERIFY(QDir().mkpath(capture));
    const QString plain = folder_.filePath(QStringLiteral("plain.onnx")), captured = capture + QStringLiteral("/model.onnx");
    for (const QString& file : {plain, captured, capture + QStringLiteral("/state.safetensors")})
      QVERIFY(QFile(file).open(QIODevice::WriteOnly));
    QFile facts(capture + QStringLiteral("/capture.json"));
    QVERIFY(facts.open(QIODevice::WriteOnly));
    facts.write(R"({"draws": "none", "settings": [["start-state", "state.safetensors"]]})");
    facts.close();
    SnapshotStore store;
    WindowSettings settings(true, store);
    RecentFiles files(settings, store);
    snapshot::Configure asked;
    for (const auto& [name, value] : {std::pair("lr", "0.5"), std::pair("start-state", "/elsewhere.safetensors")}) {
      auto* setting = asked.add_settings();
      setting->set_name(name);
      setting->set_value(value);
    }
    const auto last = [&](const QString& model) {
      files.noteSetUp(model, asked);
      QStringList all;
      const snapshot::Configure found = files.lastSetUp(model);
      for (const auto& s : found.settings())
        all << QString::fromStdString(s.name()) + '=' + QString::fromStdString(s.value());
      return all;
    };
    QCOMPARE(last(plain), QStringList{QStringLiteral("lr=0.5")});
    QCOMPARE(last(captured),
             (QStringList{QStringLiteral("lr=0.5"), QStringLiteral("start-state=%1/state.safetensors").arg(capture)}));
  }
};

SS_QT_CLASS(QApplication, KeptTrainingTest)
#include "tst_kept_training.moc"
