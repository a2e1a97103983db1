// SPDX-License-Identifier: GPL-3.0-or-later
// A window at the loop of a program that runs by itself (tests/app/api/attach_script.cpp): it looks, holds, steps, lets go.
#include <QAbstractButton>
#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QProcess>
#include <QTest>

#include "app/workbench/actions.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/view_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/made_models.h"
#include "tests/workbench/window_driver.h"

using namespace stepscope;

class AttachTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  QString socket() const { return folder_.filePath(QStringLiteral("loop.sock")); }

  // Runs until its standard input is closed.
  std::unique_ptr<QProcess> startScript(const QStringList& more = {}) {
    auto script = std::make_unique<QProcess>();
    script->setProcessChannelMode(QProcess::ForwardedErrorChannel);
    script->start(QStringLiteral(ATTACH_SCRIPT),
                  QStringList{folder_.filePath(QStringLiteral("linear.onnx")), socket(), QStringLiteral("-1")} + more);
    if (!script->waitForReadyRead(30'000)) return nullptr;
    return script;
  }
  static bool prints(QProcess& script) {
    script.readAll();
    return script.waitForReadyRead(30'000);
  }
  static void end(QProcess& script) {
    script.closeWriteChannel();
    QVERIFY(script.waitForFinished(30'000));
    QCOMPARE(script.exitCode(), 0);
  }
  bool attached(WindowDriver& w, const QString& host = {}) {
    w.loop().act([&] { w->connectTo({host, host.isEmpty() ? QString() : QStringLiteral(REAL_WORKER), socket()}); });
    return w.loop().wait([&] {
      return (w->session().running() && w->store().steps().size() > 3) || w->notice().isProblem();
    }) && w->session().running();
  }
  static bool enabled(WindowDriver& w, const char* action) { return w->actions()[QLatin1String(action)]->isEnabled(); }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    QFile model(folder_.filePath(QStringLiteral("linear.onnx")));
    QVERIFY(model.open(QIODevice::WriteOnly));
    const std::string bytes = testing::scriptModel();
    QCOMPARE(model.write(bytes.data(), static_cast<qint64>(bytes.size())), static_cast<qint64>(bytes.size()));
  }

  void theLoopIsSeenHeldSteppedAndLetGo() {
    const auto script = startScript();
    QVERIFY(script);
    WindowDriver w;
    QVERIFY2(attached(w), qPrintable(w->notice().text()));
    QVERIFY2(w->windowTitle().startsWith(QStringLiteral("Attached to attach_script (PID %1)").arg(script->processId())),
             qPrintable(w->windowTitle()));
    QVERIFY(w->store().plan() && w->store().graph());
    QCOMPARE(w->store().steps().back()->spans_size(), w->store().plan()->size());
    QVERIFY(w->store().steps().back()->has_loss());
    w.picture(QStringLiteral("attached"));
    // Paused: the script waits before its next pass.
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    if (w->store().position().in_step()) QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.loop().wait([&] { return w->store().position().in_step() && !w->session().busy(); }));
    QCOMPARE(w.instruction(), 1);
    const std::int64_t step = w->store().position().step();
    // Where the forward pass ends; into the backward pass; and to its end.
    QVERIFY_DONE(w.act("step_phase"), w);
    QVERIFY(w.settled());
    const int forward = w.instruction();
    QVERIFY(forward > 1 && forward < w->store().plan()->size());
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), forward + 1);
    QCOMPARE(w->store().position().step(), step);
    w.picture(QStringLiteral("attached-paused"));
    // What the script drives is not offered.
    for (const char* action : {"step_back", "step_phase_back", "run_back", "abandon", "rewind", "new_run", "save_state",
                               "compare_bits", "restart", "configure"})
      QVERIFY2(!enabled(w, action), action);
    for (const char* action : {"step", "step_whole", "run", "train", "detach"}) QVERIFY2(enabled(w, action), action);
    View* options = w.view(QStringLiteral("options"));
    QVERIFY(options && !w->store().options().empty());
    const auto said = [&] { return options->findChild<QLabel*>(QStringLiteral("options_doc"))->text(); };
    QVERIFY(w.loop().wait([&] { return said().contains(QStringLiteral("The script drives")); }));
    for (const auto* box : options->findChildren<QComboBox*>())
      if (box->accessibleName() == u"Value") QVERIFY(!box->isEnabled());
    w.picture(QStringLiteral("attached-options"));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.settled());
    // Behind it, or before the next call already.
    QVERIFY(!w->store().position().in_step() || w.instruction() == 0);
    QCOMPARE(w->store().steps().back()->step(), step);
    // It runs on, and the window sees it.
    w.loop().act([&] { w->session().letRun(); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().back()->step() > step + 3; }));
    // The window lets go.
    QVERIFY_DONE(w.act("detach"), w);
    QVERIFY(w.loop().wait([&] { return !w->session().attached() && w->store().workerState() == WorkerState::kIdle; }));
    QVERIFY(prints(*script));
    end(*script);
  }

  // Every view is shown and asks for nothing that is refused; what would change the loop or run beside it is off and says
  // why, and comes back with a worker.
  void whatTheScriptDrivesIsOffInEveryViewAndSaysWhy() {
    const std::vector<std::pair<QString, QStringList>> kOff = {
        {QStringLiteral("alerts"), {QStringLiteral("alert_go")}},
        {QStringLiteral("bisect"), {QStringLiteral("bisect_start")}},
        {QStringLiteral("capacity"), {QStringLiteral("capacity_plan")}},
        {QStringLiteral("capture"), {QStringLiteral("capture_compare")}},
        {QStringLiteral("determinism"), {QStringLiteral("determinism_twice")}},
        {QStringLiteral("ledger"), {QStringLiteral("ledger_measure"), QStringLiteral("ledger_confirm")}},
        {QStringLiteral("precision"), {QStringLiteral("precision_study"), QStringLiteral("precision_apply")}},
        {QStringLiteral("recompute"), {QStringLiteral("recompute_apply"), QStringLiteral("recompute_refresh")}},
        {QStringLiteral("streams"),
         {QStringLiteral("streams_apply"), QStringLiteral("streams_automatic"), QStringLiteral("streams_try")}},
        {QStringLiteral("trials"), {QStringLiteral("trials_start"), QStringLiteral("trials_apply")}},
    };
    const auto script = startScript();
    QVERIFY(script);
    WindowDriver w;
    QVERIFY2(attached(w), qPrintable(w->notice().text()));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.loop().wait([&] { return w->store().position().in_step() && !w->session().busy(); }));
    for (const ViewEntry& entry : viewList()) {
      QVERIFY2(w.view(QLatin1String(entry.id)), entry.id);
      QVERIFY2(!w->notice().isProblem(), qPrintable(QLatin1String(entry.id) + QStringLiteral(": ") + w->notice().text()));
      for (const auto* line : w.view(QLatin1String(entry.id))->findChildren<QLabel*>())
        QVERIFY2(!line->text().contains(QStringLiteral("not in a loop that a script drives")), qPrintable(line->text()));
    }
    const auto tips = [&](const QString& view, const QString& name) {
      if (!w.view(view)) return std::pair(true, QStringLiteral("no view '%1'").arg(view));
      const auto* button = w->findChild<QAbstractButton*>(name);  // in the view or in the header of its panel
      return button ? std::pair(button->isEnabled(), button->toolTip()) : std::pair(true, QStringLiteral("not there"));
    };
    for (const auto& [view, names] : kOff)
      for (const QString& name : names) {
        const auto [on, tip] = tips(view, name);
        QVERIFY2(!on && tip.startsWith(QStringLiteral("A script drives this loop")), qPrintable(name + ": " + tip));
      }
    for (const char* action :
         {"step_back", "rewind", "new_run", "save_state", "compare_bits", "restart", "configure", "load_streams"})
      QVERIFY2(!enabled(w, action) &&
                   w->actions()[QLatin1String(action)]->toolTip().startsWith(QStringLiteral("A script drives")),
               action);
    w.picture(QStringLiteral("attached-off"));
    w.loop().act([&] { w->session().letRun(); });
    QVERIFY_DONE(w.act("detach"), w);
    QVERIFY(w.loop().wait([&] { return !w->session().attached() && w->store().workerState() == WorkerState::kIdle; }));
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    for (const QString& name :
         {QStringLiteral("trials_start"), QStringLiteral("ledger_measure"), QStringLiteral("bisect_start")}) {
      const auto [on, tip] = tips(name.section('_', 0, 0), name);
      QVERIFY2(on && !tip.startsWith(QStringLiteral("A script drives")), qPrintable(name + ": " + tip));
    }
    QVERIFY(enabled(w, "save_state") && enabled(w, "load_streams"));
    QVERIFY(!w->actions()[QStringLiteral("save_state")]->toolTip().contains(QStringLiteral("script")));
    end(*script);
  }

  // From the end of a pass to what the script does next, and on into the pass that follows.
  void whatTheScriptDoesBetweenPassesIsSteppedToo() {
    const auto script = startScript({QStringLiteral("places")});
    QVERIFY(script);
    WindowDriver w;
    QVERIFY2(attached(w), qPrintable(w->notice().text()));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    const auto stands = [&] { return QString::fromStdString(w->store().position().stopped_by()); };
    const auto stepTo = [&](const QString& place) {
      for (int i = 0; i < 20 && stands() != place; ++i)
        if (!w.act("step") || !w.settled()) return false;
      return stands() == place;
    };
    QVERIFY2(stepTo(QStringLiteral("script: attach_script: looks at its loss")), qPrintable(stands()));
    const auto* where = w->findChild<QWidget*>(QStringLiteral("status_line"));
    QStringList words;
    for (const auto* label : where->findChildren<QLabel*>()) words << label->text();
    QVERIFY2(words.join(' ').contains(QStringLiteral("attach_script: looks at its loss")), qPrintable(words.join(' ')));
    w.picture(QStringLiteral("attached-place"));
    QVERIFY_DONE(w.act("step"), w);  // the backward pass
    QVERIFY(w.settled());
    QCOMPARE(stands(), QStringLiteral("step"));
    QVERIFY2(stepTo(QStringLiteral("script: attach_script: w -= 0.01 dw")), qPrintable(stands()));
    QVERIFY_DONE(w.act("step"), w);  // the next call
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), 0);
    w.loop().act([&] { w->session().letRun(); });
    QVERIFY(prints(*script));
    QVERIFY_DONE(w.act("detach"), w);
    end(*script);
  }

  void aWindowThatClosesLetsTheScriptGoOn() {
    const auto script = startScript();
    QVERIFY(script);
    {
      WindowDriver w;
      QVERIFY2(attached(w), qPrintable(w->notice().text()));
      w.loop().act([&] { w->session().pause(); });
      QVERIFY(w.settled());
      QVERIFY_DONE(w.act("step"), w);
      QVERIFY(w.loop().wait([&] { return w->store().position().in_step() && !w->session().busy(); }));
    }
    QVERIFY(prints(*script));
    end(*script);
  }

  void aScriptThatDiesIsToldAndWhatItDidStays() {
    const auto script = startScript();
    QVERIFY(script);
    WindowDriver w;
    QVERIFY2(attached(w), qPrintable(w->notice().text()));
    script->kill();
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY2(w->notice().text().contains(QStringLiteral("script has ended")), qPrintable(w->notice().text()));
    QVERIFY(w->store().plan() && !w->store().steps().empty());
    QVERIFY(!enabled(w, "restart") && !enabled(w, "step"));
    w.picture(QStringLiteral("attached-ended"));
    script->waitForFinished(30'000);
    // A model is opened with a worker again.
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY(!w->session().attached());
    QVERIFY_DONE(w.act("step_whole"), w);
  }

  // Through ssh, for which a script stands in.
  void theScriptMayRunOnAnotherMachine() {
    QFile ssh(folder_.filePath(QStringLiteral("ssh")));
    QVERIFY(ssh.open(QIODevice::WriteOnly));
    ssh.write("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nexec sh -c \"$3\"\n");
    QVERIFY(ssh.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
    ssh.close();
    qputenv("STEPSCOPE_SSH", ssh.fileName().toUtf8());
    const auto script = startScript();
    QVERIFY(script);
    WindowDriver w;
    QVERIFY2(attached(w, QStringLiteral("far")), qPrintable(w->notice().text()));
    QVERIFY2(w->windowTitle().contains(QStringLiteral("on far")), qPrintable(w->windowTitle()));
    QVERIFY_DONE(w.act("detach"), w);
    QVERIFY(prints(*script));
    end(*script);
  }

  void aSocketWithoutAScriptIsSaid() {
    WindowDriver w;
    w.loop().act([&] { w->connectTo({{}, {}, folder_.filePath(QStringLiteral("none.sock"))}); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY2(w->notice().text().contains(QStringLiteral("stepscope.attach()")), qPrintable(w->notice().text()));
    // A worker is there again.
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kIdle; }));
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
  }
};

SS_QT_CLASS(QApplication, AttachTest)
#include "tst_attach.moc"
