// SPDX-License-Identifier: GPL-3.0-or-later
// What the window says where a person would otherwise guess: that a pane waits for a build, how far a run is, what is wrong
// with a query, which model a report is of.
#include <signal.h>

#include <QLabel>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <set>

#include "engine/snapshot/build_phases.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/names.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

class SaidTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // "Not built yet", "is being built" and "filled" are three texts.
  void panesSayThatTheModelIsBuilt() {
    WindowDriver w({1600, 1000});
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    View* instructions = w.view(QStringLiteral("instructions"));
    View* memory = w.view(QStringLiteral("memory"));
    for (View* view : {instructions, memory})
      QVERIFY2(view->shownEmptyText().contains(QStringLiteral("is not built yet")), qPrintable(view->shownEmptyText()));
    const pid_t worker = childProcesses().front();
    kill(worker, SIGSTOP);
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->store().building(); }));
    for (View* view : {instructions, memory})
      QVERIFY2(view->shownEmptyText().contains(QStringLiteral("is being built")), qPrintable(view->shownEmptyText()));
    w.picture(QStringLiteral("panes-while-building"));
    kill(worker, SIGCONT);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    for (View* view : {instructions, memory}) QCOMPARE(view->shownEmptyText(), QString());
  }

  // Where a build is, once: its stage among all of them stands in the notice, and beside it no other text counts its
  // seconds.
  void aBuildSaysItsStage() {
    WindowDriver w({1600, 1000});
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    const pid_t worker = childProcesses().front();
    QStringList began;
    const auto hold = QObject::connect(&w->session(), &ModelSession::stageBegan, &w->session(), [&](const QString& name) {
      began << name;
      if (name == u"gradient") kill(worker, SIGSTOP);
    });
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return !w->notice().text().isEmpty(); }));
    const BuildTrace& trace = w->session().buildTrace();
    QVERIFY(trace.running() && trace.place() >= 8);
    const QString stage =
        QStringLiteral("building, stage %1 of 14: %2").arg(trace.place()).arg(names::buildPhase(trace.phaseName()));
    QVERIFY2(w->notice().text().startsWith(stage), qPrintable(w->notice().text()));
    const auto* bar = w->notice().findChild<QProgressBar*>();
    QVERIFY(bar->maximum() > 0);
    QCOMPARE(bar->value(), bar->maximum() * (trace.place() - 1) / 14);
    const auto* work = w->findChild<QLabel*>(QStringLiteral("status_worker"));
    QVERIFY(w.loop().wait([&] { return !work->text().contains(QStringLiteral("building")); }));
    w.picture(QStringLiteral("building-stage"));
    kill(worker, SIGCONT);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    QObject::disconnect(hold);
    QVERIFY2(began.contains(QStringLiteral("bind")), "the last one too");
    // Every phase of a build has its place, and words; there is none more.
    std::vector<std::string> phases;
    for (const auto& span : w->store().phases())
      if (span.depth() == 0) phases.push_back(span.name());
    QCOMPARE(phases, std::vector<std::string>(kBuildPhases.begin(), kBuildPhases.end()));
    for (const std::string& name : phases)
      QVERIFY2(names::buildPhase(QString::fromStdString(name)) != QString::fromStdString(name), name.c_str());
  }

  // So does the reading of a file, before there is anything to build.
  void theReadingOfAFileSaysItsStage() {
    QString missing;
    const auto model = corpusModel(QStringLiteral("qwen_dynamo"), &missing);  // takes long enough to be held
    if (!model) QSKIP(qPrintable(missing));
    WindowDriver w({1600, 1000});
    pid_t worker = 0;
    QObject::connect(&w->session(), &ModelSession::stageBegan, &w->session(), [&](const QString& name) {
      if (name != u"load" || worker != 0) return;
      worker = childProcesses().front();
      kill(worker, SIGSTOP);
    });
    w.loop().act([&] { emit w->wishes().openPath(model->model); });
    QVERIFY(w.loop().wait([&] { return !w->notice().text().isEmpty(); }));
    const BuildTrace& trace = w->session().buildTrace();
    const QString stage = QStringLiteral("reading model.onnx, stage %1 of 14: %2")
                              .arg(trace.place())
                              .arg(names::buildPhase(trace.phaseName()));
    QVERIFY2(trace.place() >= 1 && trace.place() <= 4 && w->notice().text().startsWith(stage),
             qPrintable(w->notice().text()));
    w.picture(QStringLiteral("reading-stage"));
    kill(worker, SIGCONT);
    QVERIFY(w.loop().wait([&] { return w->store().model() != nullptr && !w->session().busy(); }) && w.settled());
  }

  // The step, and of how many, while it goes; the loss follows.
  void aRunSaysHowFarItIs() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    const auto* where = w->findChild<QLabel*>(QStringLiteral("status_where"));
    const auto* loss = w->findChild<QLabel*>(QStringLiteral("status_loss"));
    std::set<QString> places, losses;
    w.loop().act([&] { w->session().train(100'000); });
    QVERIFY(w.loop().wait([&] {
      if (where->text().contains(QStringLiteral(" of 100,000"))) places.insert(where->text());
      if (!loss->text().isEmpty()) losses.insert(loss->text());
      return places.size() >= 3 && losses.size() >= 3;
    }));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QVERIFY_LOOP(w);
  }

  // A run that begins at the end of a step leaves the phase it was paused in.
  void aRunSaysNoPhaseThatIsOver() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    const auto* phase = w->findChild<QLabel*>(QStringLiteral("status_phase"));
    w.loop().act([&] { w->session().runTo(w->store().plan()->size()); });
    QVERIFY(w.settled());
    QVERIFY2(phase->text().contains(QStringLiteral("end of step")), qPrintable(phase->text()));
    const std::int64_t before = w->store().position().step();
    bool over = false;
    const auto look = QObject::connect(&w->store(), &SnapshotStore::stepsChanged, &w->store(), [&] {
      QMetaObject::invokeMethod(
          phase->window(),
          [&] { over = over || (w->session().running() && phase->text().contains(QStringLiteral("end of step"))); },
          Qt::QueuedConnection);
    });
    w.loop().act([&] { w->actions()[QStringLiteral("run")]->trigger(); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() >= static_cast<std::size_t>(before) + 4; }));
    QVERIFY(w->session().running());
    QVERIFY2(!phase->text().contains(QStringLiteral("end of step")), qPrintable(phase->text()));
    QObject::disconnect(look);
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QVERIFY(!over);
  }

  // Why it stopped is said where it stopped, and no longer one instruction away.
  void aStopIsForgottenWhenThePositionMoves() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const auto* note = w->findChild<QLabel*>(QStringLiteral("status_note"));
    w.loop().act([&] { w->session().toggleBreakpoint(9); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->actions()[QStringLiteral("run")]->trigger(); });
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), 9);
    QVERIFY2(note->text().contains(QStringLiteral("instruction 9")), qPrintable(note->text()));
    // A person gave no breakpoint a number, so none is named.
    const QString node = names::node(*w->store().graph(), w->store().plan()->instruction(9)->node());
    QVERIFY2(note->toolTip().endsWith(node.toHtmlEscaped()), qPrintable(note->toolTip()));
    QVERIFY2(!note->text().contains(QStringLiteral("breakpoint 3")), qPrintable(note->text()));
    QVERIFY_DONE(w.act("step_back"), w);
    QCOMPARE(w.instruction(), 8);
    QVERIFY2(!note->text().contains(QStringLiteral("instruction 9")), qPrintable(note->text()));
  }

  // Where a step begins there is nothing to run back over, which is said with what goes further back.
  void runningBackAtTheBeginOfAStepSaysWhatElseThereIs() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY_DONE(w.act("run_back"), w);
    QCOMPARE(w.instruction(), 0);
    const auto* note = w->findChild<QLabel*>(QStringLiteral("status_note"));
    QVERIFY_DONE(w.act("run_back"), w);
    QVERIFY2(note->toolTip().contains(QStringLiteral("Rewind to step")), qPrintable(note->toolTip()));
  }

  void aMistakeInAQueryIsSaid() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    View* sql = w.view(QStringLiteral("sql"));
    auto* editor = sql->findChild<QPlainTextEdit*>(QStringLiteral("sql_editor"));
    QVERIFY(editor);
    const auto said = [&] {
      QStringList texts;
      for (const QLabel* label : sql->findChildren<QLabel*>())
        if (label->isVisible() && label->property("role").toString() == u"error") texts << label->text();
      return texts.join('\n');
    };
    const auto ask = [&](const char* statement) {
      w.loop().act([&] {
        editor->setPlainText(QLatin1String(statement));
        for (auto* button : sql->findChildren<QPushButton*>())
          if (button->text() == u"Run") button->click();
      });
      return w.loop().wait([&] { return !w->store().project().sqlRunning(); }) && w.settled();
    };
    for (const auto& [statement, fault] : {std::pair("SELECT lost FROM steps", "no such column: lost"),
                                           std::pair("SELEC 1", "syntax error"), std::pair("DELETE FROM steps", "read")}) {
      QVERIFY(ask(statement));
      QVERIFY2(w.loop().wait([&] { return said().contains(QLatin1String(fault)); }, 5'000), qPrintable(said()));
    }
    w.picture(QStringLiteral("sql-mistake"));
    QVERIFY(ask("SELECT loss FROM steps"));
    QVERIFY2(w.loop().wait([&] { return said().isEmpty(); }, 5'000), qPrintable(said()));
  }

  // Every sample is a model.onnx: its folder tells them apart.
  void aReportIsTitledWithTheFolderOfItsModel() {
    const QTemporaryDir folder;
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    const QString path = folder.filePath(QStringLiteral("r.html"));
    QVERIFY(w.exportTo("report_html", path));
    const QFileInfo model(bundledModels()[0].model);
    const QString title = model.dir().dirName() + '/' + model.fileName();
    QVERIFY2(textOf(path).contains(QStringLiteral("<h1>%1").arg(title)), qPrintable(title));
  }
};

SS_QT_CLASS(QApplication, SaidTest)
#include "tst_said.moc"
