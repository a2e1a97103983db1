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

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

constexpr int kCommands = 30;

// What is trained, and the losses by step when nothing disturbs it.
struct Undisturbed {
  QString name;
  TestModel model;
  std::vector<std::pair<QString, QString>> fields;  // of the set-up
  int steps;                                        // no command is given beyond
  std::vector<double> losses;
  // What was seen of a value in the middle of a step, by step and name.
  std::map<std::pair<std::int64_t, std::string>, std::string> values;
};

// Options that change no bit of these models.
constexpr const char* kOptions[] = {"memory.inplace", "memory.reuse", "pass.strided_views", "pass.eliminate_identity"};

}  // namespace

class AnyOrderTest : public QObject {
  Q_OBJECT

  std::vector<Undisturbed> runs_;

  class Person {
   public:
    Person(WindowDriver& w, unsigned seed, int steps) : w_(w), random_(seed), steps_(steps) {}

    // One command, and perhaps no patience to see what comes of it. Returns what was done.
    QString next() {
      const std::int64_t step = w_->store().position().step();
      const int count = w_->store().plan() ? w_->store().plan()->size() : 0;
      if (w_->store().workerState() == WorkerState::kDead) {
        trigger("restart");
        patience();
        return QStringLiteral("restart");
      }
      if (step >= steps_ - steps_ / 5) {
        const int back = below(steps_ / 10);
        w_.loop().act([&] { w_->session().rewind(back); });
        patience();
        return QStringLiteral("rewind to %1, near the end").arg(back);
      }
      QString done;
      switch (below(21)) {
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
          const int to = below(static_cast<int>(std::min<std::int64_t>(step, 2)) + 1), at = below(count / 8 + 1) * 8 % count;
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
        case 19: {
          const int which = below(4);
          w_.loop().act([&] {
            if (which == 0) w_->session().compareBits();
            if (which == 1) w_->session().measureLedger();
            if (which == 2) w_->session().determinism();
            if (which == 3) w_->session().newRun();
          });
          wait(below(100));
          if (below(2)) w_.loop().act([&] { QTest::keyClick(&*w_, Qt::Key_Escape); });
          done = QStringLiteral("study %1").arg(which);
          break;
        }
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
        wait(100);  // the end of a worker that was killed is not told at once
        if (!w_.settled()) return false;
        bool rests = true;
        for (auto* dialog : w_->findChildren<SetUpDialog*>()) {
          if (!dialog->isVisible()) continue;
          auto* build = dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"));
          if (w_->session().built())
            w_.loop().act([&] { QTest::keyClick(&*w_, Qt::Key_Escape); });
          else  // what was left was a new run before it was there
            w_.loop().act([build] { build->click(); });
          rests = false;
        }
        if (w_->store().workerState() == WorkerState::kDead) {
          trigger("restart");
          rests = false;
        }
        if (rests && w_->session().built()) return true;
        if (rests) trigger("configure");
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
    const int steps_;
  };

  // What is wrong with what the window shows at rest; empty where nothing is.
  static QString wrong(WindowDriver& w, Undisturbed& of) {
    const SnapshotStore& store = w->store();
    const auto& steps = store.series().step();
    const auto& losses = store.series().loss();
    if (w->notice().isProblem()) return QStringLiteral("a problem: ") + w->notice().text();
    if (store.building() || w->session().running()) return QStringLiteral("it rests and does not");
    if (static_cast<std::int64_t>(steps.size()) != store.position().step())
      return QStringLiteral("%1 steps are shown, the position is in step %2").arg(steps.size()).arg(store.position().step());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i] != static_cast<std::int64_t>(i)) return QStringLiteral("place %1 has step %2").arg(i).arg(steps[i]);
      if (losses[i] != of.losses[i])
        return QStringLiteral("step %1: loss %2, undisturbed %3")
            .arg(i)
            .arg(losses[i], 0, 'g', 17)
            .arg(of.losses[i], 0, 'g', 17);
    }
    const QString step = w->findChild<QLabel*>(QStringLiteral("status_step"))->text();
    if (!step.contains(QString::number(store.position().step())))
      return QStringLiteral("the status line says \"%1\" in step %2").arg(step).arg(store.position().step());
    if (store.position().in_step() && store.position().instruction() > store.plan()->size())
      return QStringLiteral("instruction %1 of %2").arg(store.position().instruction()).arg(store.plan()->size());
    return wrongValue(w, of);
  }

  // The one answer to a question on the project; what is wrong begins with "error".
  static QString asked(WindowDriver& w, const QString& query) {
    w.loop().act([&] { emit w->wishes().runSql(query); });
    const auto& answer = w->store().project().sql();
    if (!w.loop().wait([&] { return answer.query == query; })) return QStringLiteral("error: no answer");
    if (!answer.error.isEmpty() || answer.rows.empty()) return QStringLiteral("error: ") + answer.error;
    return answer.rows[0][0];
  }

  // What the project holds of the runs of this window: every step that is shown, and whenever it ran it had this loss.
  static QString wrongRecord(WindowDriver& w, const Undisturbed& of, const QString& firstRun) {
    if (!w.recorded()) return QStringLiteral("what is recorded is not written");
    const QString error =
        asked(w, QStringLiteral("SELECT step, printf('%!.17g', min(loss)), printf('%!.17g', max(loss)) FROM steps "
                                "WHERE run >= ") +
                     firstRun + QStringLiteral(" GROUP BY step ORDER BY step"));
    const auto& answer = w->store().project().sql();
    if (error.startsWith(u"error")) return error;
    if (static_cast<std::int64_t>(answer.rows.size()) < w->store().position().step())
      return QStringLiteral("%1 steps are recorded, %2 ran").arg(answer.rows.size()).arg(w->store().position().step());
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
      const auto& row = answer.rows[i];
      const double loss = of.losses[i];
      if (row[0].toLongLong() != static_cast<qint64>(i) || row[1].toDouble() != loss || row[2].toDouble() != loss)
        return QStringLiteral("recorded: step %1, loss %2 to %3; expected %4")
            .arg(row[0], row[1], row[2], QString::number(loss, 'g', 17));
    }
    return {};
  }

  // Of the instruction that ran last.
  static QString wrongValue(WindowDriver& w, Undisturbed& of) {
    const snapshot::Position at = w->store().position();
    if (!at.in_step() || at.instruction() == 0) return {};
    if (!w.select(Selection::ofInstruction(at.instruction() - 1))) return QStringLiteral("a selected value does not come");
    const TensorPtr shown = w.shownTensor();
    const auto* value = w->store().graph()->value(w->selection().selection().value);
    if (!shown || !value || shown->data().empty()) return {};  // it writes no memory
    if (shown->step() != at.step()) return QStringLiteral("a value of step %1 in step %2").arg(shown->step()).arg(at.step());
    const auto [known, fresh] = of.values.try_emplace({at.step(), value->name()}, shown->data());
    if (!fresh && known->second != shown->data())
      return QStringLiteral("step %1: '%2' has other bits than before")
          .arg(at.step())
          .arg(QString::fromStdString(value->name()));
    return {};
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
    const QString padding = QStringLiteral(SOURCE_FOLDER "/app/samples/padding");
    runs_ = {
        {"digits", bundledModels()[0], {}, 400, {}, {}},
        {"digits, two at a time", bundledModels()[0], {{QStringLiteral("accumulate"), QStringLiteral("2")}}, 400, {}, {}},
        {"padding", {"padding", padding + "/model.onnx", padding + "/batches.npz"}, {}, 100, {}, {}}};
    for (Undisturbed& run : runs_) {
      WindowDriver w;
      QVERIFY_DONE(w.build(run.model, run.fields), w);
      w.loop().act([&] { w->session().train(run.steps); });
      QVERIFY(w.settled());
      run.losses.assign(w->store().series().loss().begin(), w->store().series().loss().end());
      QCOMPARE(static_cast<int>(run.losses.size()), run.steps);
    }
  }

  void theNumbersAreThoseOfAnUndisturbedRun_data() {
    QTest::addColumn<int>("run");
    QTest::addColumn<unsigned>("seed");
    const QStringList seeds = qEnvironmentVariable("STEPSCOPE_SEEDS", QStringLiteral("1:1")).split(u':');
    for (unsigned i = 0; i < seeds.value(1).toUInt(); ++i) {
      const unsigned seed = seeds[0].toUInt() + i;
      for (std::size_t r = 0; r < runs_.size(); ++r)
        QTest::newRow(qPrintable(QStringLiteral("%1, %2").arg(runs_[r].name).arg(seed))) << static_cast<int>(r) << seed;
    }
  }
  void theNumbersAreThoseOfAnUndisturbedRun() {
    QFETCH(int, run);
    QFETCH(unsigned, seed);
    Undisturbed& of = runs_[static_cast<std::size_t>(run)];
    WindowDriver w;
    QVERIFY_DONE(w.build(of.model, of.fields), w);
    QVERIFY(w.recorded());
    const QString firstRun = asked(w, QStringLiteral("SELECT max(id) FROM runs"));
    QVERIFY2(!firstRun.startsWith(u"error"), qPrintable(firstRun));
    Person person(w, seed, of.steps);
    QStringList done;
    const int commands =
        qEnvironmentVariableIsSet("STEPSCOPE_COMMANDS") ? qEnvironmentVariableIntValue("STEPSCOPE_COMMANDS") : kCommands;
    for (int i = 0; i < commands; ++i) {
      done << person.next();
      if (i % 5 != 4) continue;
      QVERIFY2(person.comeToRest(), qPrintable(done.join(QStringLiteral("; ")) +
                                               QStringLiteral(": it does not come to rest, ") + w->notice().text()));
      const QString fault = wrong(w, of);
      QVERIFY2(fault.isEmpty(), qPrintable(done.join(QStringLiteral("; ")) + QStringLiteral(": ") + fault));
    }
    // Onward as if nothing had been.
    if (w->store().position().in_step()) QVERIFY_DONE(w.act("step_whole"), w);
    const std::int64_t left = std::min<std::int64_t>(20, of.steps - w->store().position().step());
    w.loop().act([&] { w->session().train(left); });
    QVERIFY(w.settled());
    const QString fault = wrong(w, of);
    QVERIFY2(fault.isEmpty(), qPrintable(done.join(QStringLiteral("; ")) + QStringLiteral("; onward: ") + fault));
    const QString record = wrongRecord(w, of, firstRun);
    QVERIFY2(record.isEmpty(), qPrintable(done.join(QStringLiteral("; ")) + QStringLiteral("; ") + record));
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(QApplication, AnyOrderTest)
#include "tst_any_order.moc"
