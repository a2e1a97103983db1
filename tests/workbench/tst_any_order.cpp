// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever is done in whatever order, the numbers are those of an undisturbed run: random commands of a person in a hurry
// (steps both ways, runs, pauses, rewinds, options, breakpoints, another set-up that is left, a worker that is killed) with
// the real worker. The same seed does the same. STEPSCOPE_SEEDS="FIRST:COUNT" tries others, STEPSCOPE_COMMANDS another
// number of commands.
#include <signal.h>

#include <QLabel>
#include <QPushButton>
#include <QTest>
#include <cstring>
#include <random>

#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

constexpr int kSteps = 400;  // of the undisturbed run; no command is given beyond
constexpr int kCommands = 30;

// Options that change no bit of this model.
constexpr const char* kOptions[] = {"memory.inplace", "memory.reuse", "pass.strided_views", "pass.eliminate_identity"};

}  // namespace

class AnyOrderTest : public QObject {
  Q_OBJECT

  std::vector<double> undisturbed_;  // losses by step

  class Person {
   public:
    Person(WindowDriver& w, unsigned seed) : w_(w), random_(seed) {}

    // One command, and perhaps no patience to see what comes of it. Returns what was done.
    QString next() {
      const std::int64_t step = w_->store().position().step();
      const int count = w_->store().plan() ? w_->store().plan()->size() : 0;
      if (w_->store().workerState() == WorkerState::kDead) {
        trigger("restart");
        patience();
        return QStringLiteral("restart");
      }
      if (step >= kSteps - 60) {
        const int back = below(40);
        w_.loop().act([&] { w_->session().rewind(back); });
        patience();
        return QStringLiteral("rewind to %1, near the end").arg(back);
      }
      QString done;
      switch (below(20)) {
        case 0:
        case 1: return does("step");
        case 2: return does("step_back");
        case 3: return does("step_phase");
        case 4: return does("step_phase_back");
        case 5:
        case 6: return does("step_whole");
        case 7: return does("abandon");
        case 8: return does("run_back");
        case 9:
        case 10: {
          trigger("run");
          wait(below(200));
          const char* end = below(2) ? "run" : "stop";
          if (w_->session().running()) trigger(end);  // else it was told that something else runs, and paused that
          done = QStringLiteral("run, then %1").arg(QLatin1String(end));
          break;
        }
        case 11: {
          const int steps = 1 + below(20);
          w_.loop().act([&] { w_->session().train(steps); });
          done = QStringLiteral("train %1").arg(steps);
          break;
        }
        case 12: {
          w_.loop().act([&] { w_->session().train(100'000); });
          wait(below(100));
          w_.loop().act([&] { w_->session().pause(); });
          done = QStringLiteral("train, then pause");
          break;
        }
        case 13: {
          const int to = below(static_cast<int>(step) + 1);
          w_.loop().act([&] { w_->session().rewind(to); });
          done = QStringLiteral("rewind to %1").arg(to);
          break;
        }
        case 14: {
          if (count == 0) break;
          const int to = below(static_cast<int>(step) + 1), at = below(count);
          w_.loop().act([&] { w_->session().goTo(to, at); });
          done = QStringLiteral("go to %1 of step %2").arg(at).arg(to);
          break;
        }
        case 15: {
          if (count == 0) break;
          const int at = below(count);
          w_.loop().act([&] { w_->selection().select(Selection::ofInstruction(at)); });
          done = QStringLiteral("select %1, ").arg(at) + does(below(2) ? "breakpoint" : "run_here");
          break;
        }
        case 16: {
          const QString name = QLatin1String(kOptions[below(static_cast<int>(std::size(kOptions)))]);
          const QString value = below(2) ? QStringLiteral("on") : QStringLiteral("off");
          w_.loop().act([&] { emit w_->wishes().setOption(name, value); });
          done = name + u'=' + value;
          break;
        }
        case 17: return does(below(3) ? "undo" : "redo");
        case 18: {
          trigger("configure");
          wait(below(150));
          for (auto* dialog : w_->findChildren<SetUpDialog*>()) {
            if (!dialog->isVisible()) continue;
            if (below(2))
              w_.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
            wait(below(60));
            break;
          }
          w_.loop().act([&] { QTest::keyClick(&*w_, Qt::Key_Escape); });
          done = QStringLiteral("another set-up, and Esc");
          break;
        }
        default: {
          const auto workers = childProcesses();
          if (workers.empty()) break;
          kill(workers.front(), SIGKILL);
          wait(below(100));
          done = QStringLiteral("the worker is killed");
        }
      }
      patience();
      return done;
    }

    // To where nothing is asked for any more, with a worker that lives and no set-up that waits.
    bool comeToRest() {
      for (int time = 0; time < 5; ++time) {
        if (!w_.settled()) return false;
        bool rests = true;
        for (auto* dialog : w_->findChildren<SetUpDialog*>()) {
          if (!dialog->isVisible()) continue;
          w_.loop().act([&] { QTest::keyClick(&*w_, Qt::Key_Escape); });
          rests = false;
        }
        if (w_->store().workerState() == WorkerState::kDead) {
          trigger("restart");
          rests = false;
        }
        if (rests) return w_->session().built();
      }
      return false;
    }

   private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    void wait(int ms) {
      QElapsedTimer timer;
      timer.start();
      w_.loop().wait([&] { return timer.elapsed() >= ms; });
    }
    void patience() {
      if (below(3))
        w_.settled();
      else
        wait(below(80));
    }
    void trigger(const char* name) {
      QAction* action = w_->actions().find(QLatin1String(name));
      if (action && action->isEnabled()) w_.loop().act([action] { action->trigger(); });
    }
    QString does(const char* name) {
      trigger(name);
      patience();
      return QLatin1String(name);
    }

    WindowDriver& w_;
    std::mt19937 random_;
  };

  // What is wrong with what the window shows at rest; empty where nothing is.
  QString wrong(WindowDriver& w) {
    const SnapshotStore& store = w->store();
    const auto& steps = store.series().step();
    const auto& losses = store.series().loss();
    if (w->notice().isProblem()) return QStringLiteral("a problem: ") + w->notice().text();
    if (store.building() || w->session().running()) return QStringLiteral("it rests and does not");
    if (static_cast<std::int64_t>(steps.size()) != store.position().step())
      return QStringLiteral("%1 steps are shown, the position is in step %2").arg(steps.size()).arg(store.position().step());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i] != static_cast<std::int64_t>(i)) return QStringLiteral("place %1 has step %2").arg(i).arg(steps[i]);
      if (losses[i] != undisturbed_[i])
        return QStringLiteral("step %1: loss %2, undisturbed %3")
            .arg(i)
            .arg(losses[i], 0, 'g', 17)
            .arg(undisturbed_[i], 0, 'g', 17);
    }
    const QString step = w->findChild<QLabel*>(QStringLiteral("status_step"))->text();
    if (!step.contains(QString::number(store.position().step())))
      return QStringLiteral("the status line says \"%1\" in step %2").arg(step).arg(store.position().step());
    if (store.position().in_step() && store.position().instruction() > store.plan()->size())
      return QStringLiteral("instruction %1 of %2").arg(store.position().instruction()).arg(store.plan()->size());
    return {};
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(kSteps); });
    QVERIFY(w.settled());
    undisturbed_.assign(w->store().series().loss().begin(), w->store().series().loss().end());
    QCOMPARE(undisturbed_.size(), std::size_t{kSteps});
  }

  void theNumbersAreThoseOfAnUndisturbedRun_data() {
    QTest::addColumn<unsigned>("seed");
    const QStringList seeds = qEnvironmentVariable("STEPSCOPE_SEEDS", QStringLiteral("1:3")).split(u':');
    for (unsigned i = 0; i < seeds.value(1).toUInt(); ++i) {
      const unsigned seed = seeds[0].toUInt() + i;
      QTest::newRow(qPrintable(QString::number(seed))) << seed;
    }
  }
  void theNumbersAreThoseOfAnUndisturbedRun() {
    QFETCH(unsigned, seed);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    Person person(w, seed);
    QStringList done;
    const int commands =
        qEnvironmentVariableIsSet("STEPSCOPE_COMMANDS") ? qEnvironmentVariableIntValue("STEPSCOPE_COMMANDS") : kCommands;
    for (int i = 0; i < commands; ++i) {
      done << person.next();
      if (i % 5 != 4) continue;
      QVERIFY2(person.comeToRest(), qPrintable(done.join(QStringLiteral("; ")) +
                                               QStringLiteral(": it does not come to rest, ") + w->notice().text()));
      const QString fault = wrong(w);
      QVERIFY2(fault.isEmpty(), qPrintable(done.join(QStringLiteral("; ")) + QStringLiteral(": ") + fault));
    }
    // Onward as if nothing had been.
    if (w->store().position().in_step()) QVERIFY_DONE(w.act("step_whole"), w);
    const std::int64_t left = std::min<std::int64_t>(20, kSteps - w->store().position().step());
    w.loop().act([&] { w->session().train(left); });
    QVERIFY(w.settled());
    const QString fault = wrong(w);
    QVERIFY2(fault.isEmpty(), qPrintable(done.join(QStringLiteral("; ")) + QStringLiteral("; onward: ") + fault));
    QVERIFY_LOOP(w);
  }
};

QTEST_MAIN(AnyOrderTest)
#include "tst_any_order.moc"
