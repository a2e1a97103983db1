// SPDX-License-Identifier: GPL-3.0-or-later
// What a person asks of a session whatever it is doing (breakpoints, watches, kept values, options) is what the worker has
// as soon as it is idle: after pauses, steps, runs, other set-ups and workers that died.
#include <QFile>
#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "app/workbench/actions.h"
#include "app/workbench/notice_bar.h"
#include "app/workbench/session/model_session.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"

using namespace stepscope;

namespace {

constexpr int kMs = 60'000;

class Driven {
 public:
  explicit Driven(const char* worker) {
    qputenv("STEPSCOPE_WORKER", worker);
    session = std::make_unique<ModelSession>(store, selection);
  }

  bool build() {
    snapshot::Configure configuration;
    auto& data = *configuration.add_settings();
    data.set_name("data");
    data.set_value(bundledModels()[0].data.toStdString());
    session->openAndBuild(bundledModels()[0].model, configuration);
    return idle();
  }
  // A worker that died is replaced.
  bool idle() {
    const bool ended = QTest::qWaitFor(
        [this] {
          if (!session->client().alive() && !session->busy()) session->restart();
          return session->built() && !session->working() && session->client().openRequests() == 0;
        },
        kMs);
    QCoreApplication::processEvents();
    return ended && (session->working() || session->client().openRequests() > 0 ? idle() : true);
  }
  // What the worker says of itself.
  snapshot::Response ask(bool options) {
    snapshot::Response answer;
    bool came = false;
    snapshot::Request request;
    if (options)
      request.mutable_options();
    else
      request.mutable_state();
    session->client().request(std::move(request), QStringLiteral("asking"), [&](const Delivery& d) {
      answer = *d.response;
      came = true;
    });
    if (!QTest::qWaitFor([&came] { return came; }, kMs)) qFatal("no answer");
    return answer;
  }

  SnapshotStore store;
  SelectionModel selection;
  std::unique_ptr<ModelSession> session;
};

std::set<std::string> textsOf(const google::protobuf::RepeatedPtrField<snapshot::Breakpoint>& all) {
  std::set<std::string> texts;
  for (const auto& b : all) texts.insert(b.ShortDebugString());
  return texts;
}

std::set<std::string> textsOf(const std::vector<snapshot::Breakpoint>& all) {
  std::set<std::string> texts;
  for (const auto& b : all) texts.insert(b.ShortDebugString());
  return texts;
}

// Values that an instruction writes and that have a name.
std::vector<int> namedValues(const SnapshotStore& store) {
  std::vector<int> values;
  for (const auto& in : store.plan()->plan().instructions())
    for (const auto& output : in.outputs()) {
      const auto* value = store.graph()->value(output.value());
      if (value && !value->name().empty() && value->role() == snapshot::NODE_OUTPUT && value->dtype() == "float32")
        values.push_back(output.value());
    }
  return values;
}

}  // namespace

class DesiresTest : public QObject {
  Q_OBJECT

  // Nothing that was asked for is missing, and nothing else is there.
  static void compare(Driven& d, const std::map<std::string, std::string>& options) {
    const snapshot::SessionState state = d.ask(false).state();
    const auto have = textsOf(state.breakpoints()), want = textsOf(d.session->desired().breakpoints());
    QCOMPARE(have, want);
    QCOMPARE(textsOf(d.store.breakpoints()), want);
    std::set<int> watched;
    for (const auto& value : state.position().watched()) watched.insert(value.value());
    const auto desired = d.session->desired().watched();
    QCOMPARE(watched, std::set<int>(desired.begin(), desired.end()));
    QCOMPARE(d.store.watched(), desired);
    const snapshot::Response list = d.ask(true);
    for (const auto& option : list.options().options()) {
      const auto wanted = options.find(option.name());
      if (wanted != options.end()) QVERIFY2(option.value() == wanted->second, option.name().c_str());
    }
    // A kept value lives until the step ends.
    for (const int value : d.session->desired().pinned()) {
      const auto* buffer = d.store.plan()->buffer(d.store.plan()->bufferOfValue(value));
      QVERIFY(buffer);
      QVERIFY2(!buffer->in_arena() || buffer->last() >= d.store.plan()->size() - 1,
               qPrintable(QStringLiteral("%1 of %2").arg(buffer->last()).arg(d.store.plan()->size())));
    }
    QCOMPARE(d.store.pinned(), d.session->desired().pinned());
  }

 private slots:
  void aBreakpointSetJustBeforeAPauseIsKept() {
    Driven d(REAL_WORKER);
    QVERIFY(d.build());
    for (int round = 0; round < 20; ++round) {
      d.session->train(1'000'000);
      QTest::qWait(round * 7);
      d.session->toggleBreakpoint(3 + round);
      d.session->watch(namedValues(d.store)[static_cast<std::size_t>(round)], true);
      d.session->pause();
      QVERIFY(d.idle());
      QCOMPARE(d.session->desired().watched().size(), static_cast<std::size_t>(round + 1));
      compare(d, {});
      if (QTest::currentTestFailed()) return;
    }
    QCOMPARE(d.session->desired().breakpoints().size(), 20u);
  }

  void whatIsAskedWhileABuildRunsIsKept() {
    Driven d(REAL_WORKER);
    QVERIFY(d.build());
    const int value = namedValues(d.store)[5];
    const std::string name = d.store.graph()->value(value)->name();
    for (int round = 0; round < 6; ++round) {
      d.session->build(snapshot::Configure(d.session->configuration()));
      QTest::qWait(round * 5);
      d.session->watch(value, round % 2 == 0);
      d.session->toggleBreakpoint(7);
      QVERIFY(d.idle());
      QCOMPARE(d.session->desired().watched().size(), round % 2 == 0 ? 1u : 0u);
      compare(d, {});
      if (QTest::currentTestFailed()) return;
    }
  }

  void whatIsAskedWhileAWorkerIsReplacedIsKept() {
    Driven d(REAL_WORKER);
    QVERIFY(d.build());
    d.session->toggleBreakpoint(4);
    d.session->toggleBreakpoint(9);
    const int value = namedValues(d.store)[2];
    d.session->watch(value, true);
    d.session->pin(value, true);
    QVERIFY(d.idle());
    QCOMPARE(d.session->desired().pinned().size(), 1u);
    d.session->restart();
    d.session->toggleBreakpoint(4);
    QVERIFY(d.idle());
    QCOMPARE(d.session->desired().breakpoints().size(), 1u);
    QCOMPARE(d.session->desired().breakpoints()[0].instruction(), 9);
    QCOMPARE(d.session->desired().watched().size(), 1u);
    compare(d, {});
  }

  // A worker that cannot read the model again is none: nothing is ready, why is told, and the next one has all that is
  // desired.
  void aRestartThatFailsLosesNothing_data() {
    QTest::addColumn<bool>("ofData");
    QTest::newRow("the model is gone") << false;
    QTest::newRow("its data are gone") << true;
  }
  void aRestartThatFailsLosesNothing() {
    QFETCH(bool, ofData);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    QTemporaryDir folder;
    TestModel model = bundledModels()[0];
    QString& file = ofData ? model.data : model.model;
    const QString path = folder.filePath(QStringLiteral("moved.%1").arg(QFileInfo(file).suffix()));
    const QString away = path + QStringLiteral(".away");
    QVERIFY(QFile::copy(file, path));
    file = path;
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(model), w);
    w.loop().act([&] { w->session().train(4); });
    QVERIFY(w.recorded());
    snapshot::Breakpoint place, nan;
    place.set_instruction(6);
    place.set_enabled(true);
    nan.set_nan(true);
    nan.set_enabled(true);
    w.loop().act([&] { w->session().setBreakpoints({place, nan}); });
    w.loop().act([&] { w->session().watch(namedValues(w->store())[2], true); });
    QVERIFY_DONE(w.act("run"), w);
    QCOMPARE(w.instruction(), 6);
    const auto desired = textsOf(w->session().desired().breakpoints());
    QCOMPARE(desired.size(), std::size_t{2});

    QVERIFY(QFile::rename(path, away));
    const auto died = [&w] {
      return w.loop().wait([&w] { return !w->session().client().alive() && !w->session().busy(); }, 20'000);
    };
    w->session().client().kill();
    QVERIFY(died());
    for (int i = 0; i < 2; ++i) {
      w.loop().act([&] { w->actions()[QStringLiteral("restart")]->trigger(); });
      QVERIFY(
          w.loop().wait([&] { return w->session().client().alive() || w->notice().text().contains(model.model); }, 20'000));
      QVERIFY(died());
      QVERIFY2(w->notice().isProblem() && w->notice().text().contains(model.model), qPrintable(w->notice().text()));
      auto* again = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
      QVERIFY(again && again->isVisible() && again->text().contains(QStringLiteral("Restart")));
      QCOMPARE(w->store().workerState(), WorkerState::kDead);
      const auto* where = w->findChild<QLabel*>(QStringLiteral("status_where"));
      QVERIFY2(where && where->text().contains(QStringLiteral("Stopped")), qPrintable(where->text()));
      for (const char* action : {"run", "step", "step_whole", "train"})
        QVERIFY2(!w->actions()[QLatin1String(action)]->isEnabled(), action);
      QCOMPARE(textsOf(w->session().desired().breakpoints()), desired);
      QCOMPARE(textsOf(w->store().breakpoints()), desired);
      QCOMPARE(w->store().watched().size(), std::size_t{1});
    }
    w.picture(QStringLiteral("a-restart-that-failed"));

    QVERIFY(QFile::rename(away, path));
    w.loop().act([&] { w->actions()[QStringLiteral("restart")]->trigger(); });
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == 4 && w->store().position().in_step(); }, 20'000));
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), 6);
    snapshot::Request ask;
    ask.mutable_state();
    std::optional<snapshot::SessionState> state;
    w->session().client().request(std::move(ask), QStringLiteral("asking"),
                                  [&](const Delivery& d) { state = d.response->state(); });
    QVERIFY(w.loop().wait([&] { return state.has_value(); }, 20'000));
    QCOMPARE(textsOf(state->breakpoints()), desired);
    QCOMPARE(state->position().watched_size(), 1);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("run"), w);
    QCOMPARE(w->store().position().step(), 5);
    QCOMPARE(w.instruction(), 6);
  }

  // Another set-up waits until a run has ended; an option that is chosen meanwhile is chosen for it too.
  void anOptionChosenWhileASetUpWaitsIsKept() {
    Driven d(REAL_WORKER);
    QVERIFY(d.build());
    for (const char* value : {"off", "on", "off"}) {
      d.session->train(1'000'000);
      QVERIFY(QTest::qWaitFor([&d] { return d.session->busy(); }, kMs));
      d.session->build(snapshot::Configure(d.session->configuration()));
      d.session->setOptions({{QStringLiteral("pass.cse"), QLatin1String(value)}});
      QVERIFY(d.idle());
      compare(d, {{"pass.cse", value}});
      if (QTest::currentTestFailed()) return;
    }
  }

  // A run with breaks that goes at full speed, because nothing but numbers is watched, sees a place that is set meanwhile.
  void aRunStopsAtAPlaceThatIsSetWhileItGoes() {
    Driven d(REAL_WORKER);
    QVERIFY(d.build());
    d.session->run(false);
    QTest::qWait(50);
    QVERIFY(d.session->running());
    d.session->toggleBreakpoint(6);
    QVERIFY(d.idle());
    QVERIFY(d.store.position().in_step());
    QCOMPARE(d.store.position().instruction(), 6);
  }

  // Another plan has other numbers: a breakpoint and a watched value follow what they stand at, in the worker too.
  void placesFollowIntoAnotherPlan() {
    Driven d(REAL_WORKER);
    QVERIFY(d.build());
    const auto labels = [&d] {
      std::map<std::string, int> found;
      for (const auto& in : d.store.plan()->plan().instructions())
        found[in.label()] = found.count(in.label()) ? -1 : in.index();  // -1: more than one
      return found;
    };
    const snapshot::Configure first = d.session->configuration();
    const auto before = labels();
    std::string moved;
    for (const auto& option : std::vector<snapshot::Option>(d.store.options())) {
      if (!option.name().starts_with("pass.") || option.value() != "on") continue;
      snapshot::Configure other = first;
      auto& setting = *other.add_settings();
      setting.set_name("set");
      setting.set_value(option.name() + "=off");
      d.session->build(other);
      QVERIFY(d.idle());
      for (const auto& [label, index] : labels())
        if (const auto old = before.find(label);
            old != before.end() && old->second >= 0 && index >= 0 && index != old->second)
          moved = label;
      if (!moved.empty()) break;
    }
    QVERIFY2(!moved.empty(), "no pass of this model moves an instruction");
    const int there = labels().at(moved), here = before.at(moved);
    const int value = d.store.plan()->instruction(there)->outputs(0).value();
    const std::string name = d.store.graph()->value(value)->name();
    d.session->toggleBreakpoint(there);
    d.session->watch(value, true);
    QVERIFY(d.idle());
    d.session->build(first);
    QVERIFY(d.idle());
    compare(d, {});
    QCOMPARE(d.session->desired().breakpoints().size(), 1u);
    QCOMPARE(d.session->desired().breakpoints()[0].instruction(), here);
    QCOMPARE(d.session->desired().watched().size(), 1u);
    QCOMPARE(d.store.graph()->value(d.session->desired().watched()[0])->name(), name);
    d.session->newRun();
    QVERIFY(d.idle());
    compare(d, {});
    QCOMPARE(d.session->desired().breakpoints().size(), 1u);
    QCOMPARE(d.session->desired().breakpoints()[0].instruction(), here);
  }

  void theWorkerHasWhatIsDesired_data() {
    QTest::addColumn<QByteArray>("worker");
    QTest::addColumn<unsigned>("seed");
    for (const unsigned seed : {1u, 2u, 3u, 4u}) QTest::addRow("real %u", seed) << QByteArray(REAL_WORKER) << seed;
    for (const unsigned seed : {1u, 2u, 3u, 4u, 5u, 6u})
      QTest::addRow("made up %u", seed) << QByteArray(FAKE_WORKER) << seed;
  }
  void theWorkerHasWhatIsDesired() {
    QFETCH(QByteArray, worker);
    QFETCH(unsigned, seed);
    Driven d(worker.constData());
    QVERIFY(d.build());
    const bool real = worker == REAL_WORKER;
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<std::string> switches;
    for (const auto& option : d.store.options())
      if (option.choices_size() == 2 && (!real || option.name().starts_with("pass."))) switches.push_back(option.name());
    QVERIFY(switches.size() >= 2);
    std::map<std::string, std::string> options;
    // A build that a worker dies of is not tried again: its options are those of the plan before.
    connect(d.session.get(), &ModelSession::buildDied, this, [&options] { options.clear(); });
    const auto buildsAnOption = [&d] { return d.session->client().activity().startsWith(QStringLiteral("setting ")); };
    int asked = 0;
    for (int round = 0; round < 5; ++round) {
      for (int action = 0; action < 30; ++action) {
        ModelSession& s = *d.session;
        switch (below(13)) {
          case 0:
          case 1:
          case 2:
            if (d.store.plan())
              s.toggleBreakpoint(static_cast<int>(below(static_cast<std::size_t>(d.store.plan()->size()))));
            break;
          case 3:
          case 4:
            if (s.built() && d.store.plan() && d.store.graph()) {
              const auto values = namedValues(d.store);
              const int value = values[below(values.size())];
              const auto now = s.desired().watched();
              s.watch(value, std::find(now.begin(), now.end(), value) == now.end());
            }
            break;
          case 5:
          case 6:
            if (s.built() && s.client().alive()) {
              const std::string& name = switches[below(switches.size())];
              options[name] = below(2) ? "on" : "off";
              s.setOptions({{QString::fromStdString(name), QString::fromStdString(options[name])}});
              ++asked;
            }
            break;
          case 7: s.run(false); break;
          case 8:
            // Who cancels a change of options means it: a pause is for runs here.
            if (s.running()) s.pause();
            break;
          case 9: s.train(40); break;
          case 10: s.step(1 + static_cast<int>(below(20))); break;
          case 11:
            if (below(3) == 0 && s.built() && !s.busy()) s.build(snapshot::Configure(s.configuration()));
            break;
          case 12:
            if (below(3) == 0 && s.built() && !d.store.building() && !buildsAnOption()) {
              s.client().kill();
              if (below(2)) s.restart();
            }
            break;
        }
        QTest::qWait(static_cast<int>(below(40)));
      }
      if (d.session->running()) d.session->pause();
      QVERIFY(d.idle());
      compare(d, options);
      if (QTest::currentTestFailed()) return;
    }
    QVERIFY(asked > 5);
  }
};

SS_QT_CLASS(QApplication, DesiresTest)
#include "tst_desires.moc"
