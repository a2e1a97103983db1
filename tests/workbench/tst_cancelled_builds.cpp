// SPDX-License-Identifier: GPL-3.0-or-later
// A build that is cancelled, at any moment and whatever has the keyboard, comes back to its set-up.
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QScopeGuard>
#include <QTemporaryFile>
#include <QTest>
#include <QToolButton>
#include <algorithm>

#include "app/workbench/actions.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/set_up_form.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"

using namespace stepscope;

class CancelledBuildsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // Esc while the settings are on their way is meant for the build that follows them. The set-up is there again as it was
  // filled in; what was built before is.
  void aCancelBeforeTheBuildBeginsEndsIt() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    qputenv("FAKE_CONFIGURE_MS", "300");
    const auto back = qScopeGuard([] {
      qputenv("STEPSCOPE_WORKER", REAL_WORKER);
      qunsetenv("FAKE_CONFIGURE_MS");
    });
    QTemporaryFile model(QDir::tempPath() + QStringLiteral("/made_up_XXXXXX.onnx"));  // the made-up worker does not read it
    QVERIFY(model.open() && model.write("model") > 0 && model.flush());
    WindowDriver w;
    SetUpDialog* dialog = w.open(model.fileName());
    QVERIFY2(dialog, qPrintable(w.failure()));
    const auto shown = [&w] { return shownSetUp(w); };
    const auto field = [](SetUpDialog* of) { return of->findChild<QLineEdit*>(QStringLiteral("set_up_accumulate")); };
    const auto begin = [&](SetUpDialog* of) {
      w.loop().act([of] { of->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
      return w->store().building() && w->session().busy();
    };
    const auto escape = [&] { w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_Escape); }); };
    auto* run = w->findChild<QToolButton*>(QStringLiteral("tool_run"));
    field(dialog)->setText(QStringLiteral("3"));
    QVERIFY(begin(dialog));
    QCOMPARE(run->defaultAction(), w->actions()[QStringLiteral("stop")]);
    QVERIFY(run->isEnabled());
    QCOMPARE(run->text().trimmed(), QStringLiteral("Cancel"));  // it throws the build away
    escape();
    QVERIFY(w.settled());
    QVERIFY(!w->session().built() && !w->store().building());
    QCOMPARE(run->defaultAction(), w->actions()[QStringLiteral("run")]);
    QVERIFY(w.loop().wait([&] { return shown() != nullptr; }));
    QCOMPARE(field(shown())->text(), QStringLiteral("3"));
    QVERIFY(begin(shown()));
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    QVERIFY(!shown());
    QCOMPARE(w->actions()[QStringLiteral("stop")]->text(), QStringLiteral("Pause"));

    // Another set-up, cancelled, and impatiently so: what was built stands, whatever is pressed then.
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.act("configure"));
    field(shown())->setText(QStringLiteral("4"));
    QVERIFY(begin(shown()));
    escape();
    QVERIFY(w.loop().wait([&] { return !w->store().building(); }));
    escape();
    QVERIFY(w.settled());
    QVERIFY(w->session().built() && !w->store().building() && !w->session().comingBack());
    QVERIFY(shown());
    QCOMPARE(field(shown())->text(), QStringLiteral("4"));
    const auto& settings = w->session().configuration().settings();
    const auto it = std::find_if(settings.begin(), settings.end(), [](const auto& s) { return s.name() == "accumulate"; });
    QVERIFY(it != settings.end());
    QCOMPARE(it->value(), std::string("3"));
    QCOMPARE(w.instruction(), 1);
    QVERIFY_DONE(w.act("step"), w);
  }

  // Whenever Esc comes and whatever has the keyboard: the set-up is there again as it was filled in, and what was built
  // before stands where it stood. A build that ended before is kept.
  void aCancelledRebuildComesBackToItsSetUp_data() {
    QTest::addColumn<int>("afterMs");
    QTest::addColumn<QString>("focus");
    for (const int ms : {0, 15, 40, 90})
      for (const char* focus : {"", "tool_run"})
        QTest::addRow("%d ms, %s", ms, *focus ? focus : "none") << ms << QString::fromLatin1(focus);
  }

  void aCancelledRebuildComesBackToItsSetUp() {
    QFETCH(int, afterMs);
    QFETCH(QString, focus);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    for (int i = 0; i < 2; ++i) QVERIFY_DONE(w.act("step"), w);
    const auto shown = [&w] { return shownSetUp(w); };
    const auto arena = [&w] { return w->store().plan()->plan().arena_bytes(); };
    const auto before = arena();
    QVERIFY(w.act("configure"));
    QPointer<SetUpDialog> first = shown();
    QWidget* has = focus.isEmpty() ? &*w : w->findChild<QWidget*>(focus);
    QVERIFY(has);
    bool pressed = false;
    const auto escape = [&] {
      pressed = true;
      has->setFocus();
      QTest::keyClick(has, Qt::Key_Escape);
    };
    w.loop().act([&] {
      first->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear();
      first->findChild<QLineEdit*>(QStringLiteral("set_up_dim"))->setText(QStringLiteral("batch=3"));
      first->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click();
      if (afterMs == 0) escape();
    });
    QElapsedTimer since;
    since.start();
    QVERIFY(w.loop().wait([&] { return pressed || since.elapsed() >= afterMs; }));
    if (!pressed && w->store().building()) w.loop().act(escape);
    QVERIFY(w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY(w->session().built() && !w->store().building());
    if (arena() != before) QSKIP("it was built before Esc came");
    QVERIFY(w.loop().wait([&] { return shown() && shown() != first; }));
    QCOMPARE(fieldOf(*shown(), "dim"), QStringLiteral("batch=3"));
    QCOMPARE(fieldOf(*shown(), "data"), QString());
    QCOMPARE(w.instruction(), 2);
    QVERIFY2(pressBuild(w, *shown()).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY(arena() != before && !shown());
    QVERIFY_DONE(w.act("step_whole"), w);
  }

  // Esc comes at once, before the worker knows of the build. The set-up is there again as it was filled in, and what was
  // built before runs on; Build pressed before it is back waits for it.
  void aBuildBeforeTheWayBackEndedIsNotLost() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    const auto before = w->store().plan()->plan().arena_bytes();
    const auto shown = [&w] { return shownSetUp(w); };
    QVERIFY(w.act("configure"));
    QPointer<SetUpDialog> first = shown();
    w.loop().act([&] {
      first->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear();
      first->findChild<QLineEdit*>(QStringLiteral("set_up_dim"))->setText(QStringLiteral("batch=3"));
      first->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click();
      QTest::keyClick(&*w, Qt::Key_Escape);
    });
    QVERIFY(w.loop().wait([&] { return shown() && shown() != first; }));
    QVERIFY(w->session().busy());
    QVERIFY2(shown()->isAncestorOf(QApplication::focusWidget()) || shown() == QApplication::focusWidget(),
             "it can be typed in");
    w.loop().act([&] { shown()->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([&] { return w->store().plan()->plan().arena_bytes() != before && !w->session().busy(); }));
    QVERIFY(!shown());
  }
};

SS_QT_CLASS(WatchedApplication, CancelledBuildsTest)
#include "tst_cancelled_builds.moc"
