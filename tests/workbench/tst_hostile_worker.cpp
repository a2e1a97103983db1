// SPDX-License-Identifier: GPL-3.0-or-later
// A worker that lies, stammers or breaks off: the window says so in words, lives, and starts another one.
#include <QTest>

#include "app/workbench/view_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"

using namespace stepscope;

class HostileWorkerTest : public QObject {
  Q_OBJECT

  static constexpr int kSeeds = 60;

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void damagedAnswersLeaveTheWindowAlive_data() {
    QTest::addColumn<int>("first");
    for (int first = 0; first < kSeeds; first += 10) QTest::addRow("seeds %d to %d", first, first + 9) << first;
  }
  void damagedAnswersLeaveTheWindowAlive() {
    QFETCH(int, first);
    WindowDriver w;
    const auto shown = [&](int ms) { w.loop().wait([&] { return !w->session().busy() && !w->session().running(); }, ms); };
    for (int seed = first; seed < first + 10; ++seed) {
      qputenv("FAKE_FUZZ", QByteArray::number(seed));
      w->session().client().kill();
      QVERIFY(w.loop().wait([&] { return !w->session().client().alive(); }));
      shown(500);
      w->openAndBuild(QStringLiteral("/nowhere/made_up.onnx"), {});
      w.loop().wait([&] { return w->session().built() && !w->session().busy(); }, 400);
      if (w->session().busy()) w->session().pause();
      for (const char* layout : {"Explore", "Memory", "Profile", "Step"}) {
        w->applyLayout(QLatin1String(layout));
        w->session().step(3);
        shown(60);
        w->selection().select(Selection::ofInstruction(seed % 20));
        w->session().train(2);
        shown(60);
        w->session().determinism();
        shown(20);
        w->session().stageGraph(QStringLiteral("load"));
        shown(20);
        w->grab();
      }
      // It died, with a reason, or it lives.
      const WorkerState state = w->store().workerState();
      QVERIFY2(state != WorkerState::kDead || !w->store().workerText().isEmpty(), qPrintable(QString::number(seed)));
      QVERIFY(state != WorkerState::kDead || w->notice().isProblem());
      // And an honest one takes its place.
      qunsetenv("FAKE_FUZZ");
      w.loop().act([&] { w->actions()[QStringLiteral("restart")]->trigger(); });
      w.loop().wait([&] { return w->store().workerState() == WorkerState::kIdle && !w->session().busy(); }, 20'000);
      if (!w->session().built()) {
        // The model was never read: it is opened as at first.
        w->openAndBuild(QStringLiteral("/nowhere/made_up.onnx"), {});
        QVERIFY2(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }, 20'000),
                 qPrintable(QStringLiteral("seed %1 %2").arg(seed).arg(w->notice().text())));
      }
      QCOMPARE(w->store().plan()->size() > 0, true);
      w->session().step(2);
      QVERIFY2(w.settled(20'000), qPrintable(QStringLiteral("seed %1: busy %2, running %3, %4 requests, '%5', state %6")
                                                 .arg(seed)
                                                 .arg(w->session().busy())
                                                 .arg(w->session().running())
                                                 .arg(w->session().client().openRequests())
                                                 .arg(w->session().client().activity())
                                                 .arg(static_cast<int>(w->store().workerState()))));
      QVERIFY(w->store().position().in_step());
    }
    const bool free = w.loop().free();
    qInfo("%s", qPrintable(w.loop().text()));
    QVERIFY2(free, qPrintable(w.loop().text()));
  }
};

SS_QT_CLASS(WatchedApplication, HostileWorkerTest)
#include "tst_hostile_worker.moc"
