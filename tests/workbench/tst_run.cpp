// SPDX-License-Identifier: GPL-3.0-or-later
// One key runs and pauses; what it costs beside full speed, and what the window says meanwhile.
#include <QLabel>
#include <QTest>
#include <algorithm>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/format.h"
#include "views/common/tokens.h"

using namespace stepscope;

class RunTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // F5 runs whole steps, says how far it is, pauses with the same key, and stops where a NaN comes in.
  void oneKeyRunsAndPauses() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QAction* run = w->actions()[QStringLiteral("run")];
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() >= 20; }));
    QVERIFY(w->session().running() && run->isEnabled());
    const auto* where = w->findChild<QLabel*>(QStringLiteral("status_where"));
    QVERIFY(where && where->text().contains(QStringLiteral("Running")) && where->text().contains(QStringLiteral("step")));
    w.picture(QStringLiteral("running"));
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.settled());
    QVERIFY(!w->session().running());
    QCOMPARE(w->store().position().step(), static_cast<std::int64_t>(w->store().series().size()));
    // At full speed with a goal it is named.
    w.loop().act([&] { w->session().train(100'000); });
    QVERIFY(w.loop().wait([&] { return where->text().contains(QStringLiteral(" of ")); }));
    QVERIFY2(where->text().contains(QStringLiteral("Full speed")), qPrintable(where->text()));
    const auto* note = w->findChild<QLabel*>(QStringLiteral("status_note"));
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.settled());
    QVERIFY(!w->session().running());
    QCOMPARE(note->text(), QStringLiteral("Paused"));
    // The loss beside the next step says that it is of the one before.
    const auto* loss = w->findChild<QLabel*>(QStringLiteral("status_loss"));
    const std::int64_t next = w->store().position().step();
    QVERIFY2(loss->text().endsWith(QStringLiteral(" of step %1").arg(format::count(next - 1))), qPrintable(loss->text()));
    QVERIFY_LOOP(w);
  }

  // A training step (F8) of a large model says how far it is while it runs.
  void aLongStepSaysHowFarItIs() {
    WindowDriver w({1600, 1000});
    TestModel model = bundledModels()[1];
    model.data.clear();
    QVERIFY_DONE(w.openBuilt(model, {{"dim", "batch=512"}, {"ring.bytes", "0"}}), w);
    const auto* where = w->findChild<QLabel*>(QStringLiteral("status_where"));
    const auto* phase = w->findChild<QLabel*>(QStringLiteral("status_phase"));
    std::set<QString> said;
    QStringList phases;
    w.loop().act([&] { w->actions()[QStringLiteral("step_whole")]->trigger(); });
    QVERIFY(w.loop().wait([&] {
      if (where->text().contains(QStringLiteral("Running"))) said.insert(where->text());
      if (!phases.contains(phase->text())) phases.append(phase->text());
      return w->store().series().size() == 1;
    }));
    QVERIFY(w.settled());
    // At its begin, and at places further on.
    QVERIFY2(said.size() >= 2, qPrintable(QStringList(said.begin(), said.end()).join('\n')));
    QVERIFY2(phases.join(' ').contains(QStringLiteral("backward")), qPrintable(phases.join('\n')));
    QVERIFY(!where->text().contains(QStringLiteral("Running")));
  }

  // Where only NaN and Inf are watched, F5 costs little more than full speed; and while it runs the values follow.
  void aRunThatIsWatchedIsNearlyAsFast_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<int>("steps");
    QTest::newRow("images, steps of a fifth of a millisecond") << 0 << 200;
    QTest::newRow("language") << 1 << 8;
  }
  void aRunThatIsWatchedIsNearlyAsFast() {
    QFETCH(int, model);
    QFETCH(int, steps);
    const auto kSteps = static_cast<std::size_t>(steps);
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[static_cast<std::size_t>(model)]), w);
    const int loss = w->store().graph()->graph().loss();
    QAction* run = w->actions()[QStringLiteral("run")];
    const auto median = [&](std::size_t first) {
      std::vector<std::int64_t> ns(w->store().series().ns().begin() + static_cast<std::ptrdiff_t>(first),
                                   w->store().series().ns().end());
      std::nth_element(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2), ns.end());
      return static_cast<double>(ns[ns.size() / 2]);
    };
    double best = 1e9;
    for (int round = 0; round < 12 && best > 1.2; ++round) {
      std::size_t first = w->store().series().size() + (round == 0 ? 1 : 0);  // without the first step of all
      w.loop().act([&] { w->session().train(steps + (round == 0 ? 1 : 0)); });
      QVERIFY(w.settled());
      const double full = median(first);
      first = w->store().series().size();
      w.loop().act([&] { run->trigger(); });
      QVERIFY(w.loop().wait([&] { return w->store().series().size() >= first + kSteps; }));
      w.loop().act([&] { run->trigger(); });
      QVERIFY(w.settled());
      best = std::min(best, median(first) / full);
    }
    QVERIFY2(best <= 1.2, qPrintable(QStringLiteral("F5 takes %1 of full speed").arg(best)));
    w.loop().act([&] { w->session().watch(loss, true); });
    QVERIFY(w.settled());
    std::set<std::int64_t> shown;
    const auto follow = QObject::connect(&w->store(), &SnapshotStore::positionChanged, &w->store(), [&] {
      if (w->session().running()) shown.insert(w->store().statisticsStep(loss));
    });
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.loop().wait([&] { return shown.size() >= 8; }));
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.settled());
    QObject::disconnect(follow);
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(QApplication, RunTest)
#include "tst_run.moc"
