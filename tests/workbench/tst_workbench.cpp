// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "app/workbench/arguments.h"
#include "app/workbench/exports.h"
#include "app/workbench/frame_reader.h"
#include "app/workbench/main_window.h"
#include "tests/support/qt_classes.h"
#include "views/common/tokens.h"

using namespace stepscope;

// The longest time the event loop was held up.
class Watchdog : public QObject {
 public:
  Watchdog() {
    connect(&timer_, &QTimer::timeout, this, [this] {
      worst_ = std::max(worst_, since_.isValid() ? since_.elapsed() : 0);
      since_.start();
    });
    timer_.start(5);
  }
  qint64 worst() const { return worst_; }

 private:
  QTimer timer_;
  QElapsedTimer since_;
  qint64 worst_ = 0;
};

class WorkbenchTest : public QObject {
  Q_OBJECT

  std::unique_ptr<MainWindow> window(const char* fault = nullptr) {
    if (fault) {
      qputenv("FAKE_FAULT", fault);
    } else {
      qunsetenv("FAKE_FAULT");
    }
    auto made = std::make_unique<MainWindow>(false);
    made->resize(1280, 800);
    made->show();
    return made;
  }

  static bool build(MainWindow& w) {
    w.openAndBuild(QStringLiteral("/nowhere/made_up.onnx"), {});
    return QTest::qWaitFor([&w] { return w.session().built() && !w.session().busy(); }, 60'000);
  }

  static bool settled(MainWindow& w) {
    return QTest::qWaitFor([&w] { return !w.session().busy() && !w.session().running(); }, 60'000);
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void framesAreCutWhereverTheStreamBreaks() {
    const QByteArray stream = FrameReader::frame("abc") + FrameReader::frame("") + FrameReader::frame("defgh");
    for (qsizetype cut = 1; cut < stream.size(); ++cut) {
      FrameReader reader;
      QList<QByteArray> got;
      for (qsizetype at = 0; at < stream.size(); at += cut) {
        reader.append(stream.mid(at, cut));
        while (auto message = reader.next()) got << *message;
      }
      QCOMPARE(got, (QList<QByteArray>{"abc", "", "defgh"}));
    }
    FrameReader reader;
    reader.append(QByteArray("\xff\xff\xff\xff", 4));
    QVERIFY(!reader.next());
    QVERIFY(reader.bad());
  }

  void stepsForthAndBack() {
    auto w = window();
    QVERIFY(build(*w));
    const auto at = [&] { return w->store().position().instruction(); };
    for (int i = 0; i < 5; ++i) {
      w->actions()[QStringLiteral("step")]->trigger();
      QVERIFY(settled(*w));
    }
    QCOMPARE(at(), 5);
    QCOMPARE(w->selection().currentInstruction(), 5);
    w->actions()[QStringLiteral("step_back")]->trigger();
    QVERIFY(settled(*w));
    QCOMPARE(at(), 4);
    w->actions()[QStringLiteral("step_phase")]->trigger();
    QVERIFY(settled(*w));
    QCOMPARE(at(), w->store().plan()->plan().first_backward());
    w->actions()[QStringLiteral("step_whole")]->trigger();
    QVERIFY(settled(*w));
    QVERIFY(!w->store().position().in_step());
    QCOMPARE(w->store().steps().size(), std::size_t{1});
    w->session().runTo(20);
    QVERIFY(settled(*w));
    QCOMPARE(at(), 20);
    w->session().toggleBreakpoint(30);
    w->actions()[QStringLiteral("run")]->trigger();
    QVERIFY(settled(*w));
    QCOMPARE(at(), 30);
  }

  void selectionReachesEveryView() {
    auto w = window();
    QVERIFY(build(*w));
    w->selection().select(Selection::ofInstruction(22));
    const Selection& s = w->selection().selection();
    QVERIFY(s.node >= 0 && s.value >= 0 && s.buffer >= 0);
    w->actions()[QStringLiteral("select_forward")]->trigger();
    QVERIFY(w->selection().selection().instruction < w->store().plan()->plan().first_backward());
    w->actions()[QStringLiteral("back")]->trigger();
    QCOMPARE(w->selection().selection().instruction, 22);
    int parameters = 0;
    // Nothing makes a parameter; where it is read first, graph and plan can show.
    for (const auto& value : w->store().graph()->graph().values()) {
      if (value.role() != snapshot::INITIALIZER || w->store().graph()->consumers(value.id()).empty()) continue;
      w->selection().select(Selection::ofValue(value.id()));
      QCOMPARE(s.value, value.id());
      const auto* node = w->store().graph()->node(s.node);
      QVERIFY2(node && std::find(node->inputs().begin(), node->inputs().end(), value.id()) != node->inputs().end(),
               value.name().c_str());
      QCOMPARE(w->store().plan()->instructionOfNode(s.node), s.instruction);
      ++parameters;
    }
    QVERIFY(parameters > 10);
  }

  void layoutsApplyAndTellThemselves() {
    auto w = window();
    QVERIFY(build(*w));
    for (const ViewLayout& layout : shippedLayouts()) {
      w->applyLayout(layout.name);
      QCoreApplication::processEvents();
      const ViewLayout now = w->board().present(layout.name);
      QVERIFY(!now.views[static_cast<std::size_t>(Area::kCentre)].isEmpty());
      QCOMPARE(ViewLayout::fromJson(now.toJson()), now);
    }
  }

  void faultsOfTheWorkerLeaveTheWindowAlive_data() {
    QTest::addColumn<QString>("fault");
    for (const char* f : {"crash", "garbage", "oversize", "truncate"}) QTest::newRow(f) << QString::fromLatin1(f);
  }
  void faultsOfTheWorkerLeaveTheWindowAlive() {
    QFETCH(QString, fault);
    auto w = window(qPrintable(fault));
    QVERIFY(build(*w));
    w->session().finishStep();
    QVERIFY(settled(*w));
    w->session().runTo(7);
    QVERIFY(settled(*w));
    w->session().step(1);
    QTRY_COMPARE_WITH_TIMEOUT(w->store().workerState(), WorkerState::kDead, 60'000);
    QVERIFY(w->notice().isProblem());
    QVERIFY(w->store().plan() != nullptr);  // the last snapshots stay
    qunsetenv("FAKE_FAULT");
    w->actions()[QStringLiteral("restart")]->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(w->session().built() && !w->session().busy() && w->store().workerState() == WorkerState::kIdle,
                             60'000);
  }

  void hungWorkerIsReportedAndCanBeRestarted() {
    auto w = window("hang");
    QVERIFY(build(*w));
    w->session().step(1);
    QTest::qWait(200);
    Watchdog watchdog;
    w->session().pause();
    QTRY_COMPARE_WITH_TIMEOUT(w->store().workerState(), WorkerState::kUnresponsive, 60'000);
    // A window that waited for the worker would stand still for as long as the worker hangs.
    QVERIFY2(watchdog.worst() < 2'000, qPrintable(QString::number(watchdog.worst())));
    QTRY_VERIFY2(w->notice().text().contains(QStringLiteral("does not answer")), qPrintable(w->notice().text()));
    QCOMPARE(w->findChild<QPushButton*>(QStringLiteral("notice_action"))->text(), QStringLiteral("Restart worker"));
    qunsetenv("FAKE_FAULT");
    w->session().restart();
    QTRY_VERIFY_WITH_TIMEOUT(w->session().built() && w->store().workerState() == WorkerState::kIdle, 60'000);
  }

  // Nobody cancelled anything: a process that was stopped says nothing by itself.
  // Where it was is told, what it had built is open, and a bug report finds what it needs.
  void aWorkerThatDiesOfAPassSaysOfWhich() {
    QTemporaryDir home;
    const QByteArray before = qgetenv("XDG_DATA_HOME");
    qputenv("XDG_DATA_HOME", QFile::encodeName(home.path()));
    auto w = window("build");
    w->openAndBuild(QStringLiteral("/nowhere/made_up.onnx"), {});
    QTRY_VERIFY_WITH_TIMEOUT(w->notice().isProblem() && w->notice().text().contains(QStringLiteral("For a bug report")),
                             60'000);
    const QString text = w->notice().text();
    for (const char* part : {"abort", "phase 'pre-grad passes'", "pass 'fuse_gelu'", "up to 'attach loss'"})
      QVERIFY2(text.contains(QLatin1String(part)), qPrintable(text));
    QVERIFY(!w->session().built());
    QCOMPARE(w->store().stages(), QStringList({"load", "inline", "infer", "attach loss"}));
    for (const QString& stage : w->store().stages()) QVERIFY2(w->store().graphOf(stage), qPrintable(stage));
    QDir bundles(text.section(QStringLiteral("For a bug report: "), 1));
    QVERIFY2(bundles.path().startsWith(home.path()), qPrintable(text));
    for (const char* name : {"report.txt", "log.txt", "graph.pb"}) QVERIFY2(bundles.exists(QLatin1String(name)), name);
    QFile report(bundles.filePath(QStringLiteral("report.txt")));
    QVERIFY(report.open(QIODevice::ReadOnly));
    QVERIFY(report.readAll().contains("fuse_gelu"));

    qunsetenv("FAKE_FAULT");
    auto* button = w->findChild<QPushButton*>(QStringLiteral("notice_action"));
    QCOMPARE(button->text(), QStringLiteral("Build without fuse_gelu"));
    button->click();
    QTRY_VERIFY_WITH_TIMEOUT(w->session().built() && !w->session().busy(), 60'000);
    const auto& settings = w->session().configuration().settings();
    QVERIFY(std::any_of(settings.begin(), settings.end(),
                        [](const snapshot::Setting& s) { return s.name() == "pass.fuse_gelu" && s.value() == "off"; }));
    if (before.isEmpty())
      qunsetenv("XDG_DATA_HOME");
    else
      qputenv("XDG_DATA_HOME", before);
  }

  // The plan that is shown is another one than the build that failed: both are named, and every graph that is left opens.
  void aWorkerThatDiesOfARebuildSaysOfWhich_data() {
    QTest::addColumn<QString>("how");
    for (const char* how : {"option", "option in a step", "set-up"}) QTest::newRow(how) << QString::fromLatin1(how);
  }
  void aWorkerThatDiesOfARebuildSaysOfWhich() {
    QFETCH(QString, how);
    QTemporaryDir home;
    const QByteArray before = qgetenv("XDG_DATA_HOME");
    qputenv("XDG_DATA_HOME", QFile::encodeName(home.path()));
    auto w = window("rebuild");
    QVERIFY(build(*w));
    const PlanPtr plan = w->store().plan();
    const QString phase = QString::fromStdString(w->store().graph()->graph().phase());
    const auto has = [&w](const std::string& name, const std::string& value) {
      const auto& settings = w->session().configuration().settings();
      return std::any_of(settings.begin(), settings.end(),
                         [&](const snapshot::Setting& s) { return s.name() == name && s.value() == value; });
    };
    if (how == u"set-up") {
      snapshot::Configure other;
      auto* set = other.add_settings();
      set->set_name("set");
      set->set_value("gelu_fusion=off");
      w->session().build(other);
    } else if (how == u"option") {
      w->session().setOptions({{QStringLiteral("gelu_fusion"), QStringLiteral("off")}});
    } else {
      w->session().step(1);
      QVERIFY(settled(*w));
      w->session().setOptions({{QStringLiteral("gelu_fusion"), QStringLiteral("off")}});
      QVERIFY(settled(*w));
      w->session().finishStep();
      QVERIFY(settled(*w));
      w->session().step(1);
    }
    QTRY_VERIFY_WITH_TIMEOUT(w->notice().isProblem() && w->notice().text().contains(QStringLiteral("For a bug report")),
                             60'000);
    const QString text = w->notice().text();
    for (const char* part : {"abort", "phase 'pre-grad passes'", "pass 'fuse_gelu'", "the plan before it",
                             "new build up to 'attach loss' can be opened"})
      QVERIFY2(text.contains(QLatin1String(part)), qPrintable(text));
    QCOMPARE(w->store().workerState(), WorkerState::kDead);
    QCOMPARE(w->store().plan(), plan);
    const QString shown = phase + QStringLiteral(", plan before");
    QCOMPARE(w->store().stages(), QStringList({"load", "inline", "infer", "attach loss", shown}));
    for (const QString& stage : w->store().stages()) QVERIFY2(w->store().graphOf(stage), qPrintable(stage));
    QCOMPARE(w->store().graphOf(shown), w->store().graph());
    QVERIFY(w->store().graphOf(QStringLiteral("infer")) != w->store().graph());
    QVERIFY(!has("set", "gelu_fusion=off"));  // a restart returns to the plan that is shown

    qunsetenv("FAKE_FAULT");
    auto* button = w->findChild<QPushButton*>(QStringLiteral("notice_action"));
    QCOMPARE(button->text(), QStringLiteral("Build without fuse_gelu"));
    button->click();
    QTRY_VERIFY_WITH_TIMEOUT(w->session().built() && !w->session().busy() && w->store().plan() != plan, 60'000);
    QVERIFY(has("pass.fuse_gelu", "off") && has("set", "gelu_fusion=off"));
    QVERIFY(!w->store().stages().contains(shown));
    if (before.isEmpty())
      qunsetenv("XDG_DATA_HOME");
    else
      qputenv("XDG_DATA_HOME", before);
  }

  // However many answers wait, the window's queue holds one word of them.
  void answersWaitInOnePlace() {
    QThread thread;
    auto* pipe = new WorkerPipe;
    pipe->moveToThread(&thread);
    connect(&thread, &QThread::finished, pipe, &QObject::deleteLater);
    std::atomic<int> told = 0;
    connect(
        pipe, &WorkerPipe::arrived, pipe, [&told] { ++told; }, Qt::DirectConnection);
    thread.start();
    QMetaObject::invokeMethod(pipe, [pipe] { pipe->start(QStringLiteral(FAKE_WORKER), {}); });
    constexpr int kAsked = 500;
    for (int id = 1; id <= kAsked; ++id) {
      snapshot::Request hello;
      hello.set_id(static_cast<std::uint64_t>(id));
      hello.mutable_hello()->set_protocol(1);
      QMetaObject::invokeMethod(pipe, [pipe, frame = FrameReader::frame(hello.SerializeAsString())] { pipe->send(frame); });
    }
    qint64 bytes = -1;
    QTRY_VERIFY_WITH_TIMEOUT(pipe->bytesRead() > 0 && std::exchange(bytes, pipe->bytesRead()) == pipe->bytesRead(), 60'000);
    std::vector<Delivery> all;
    QTRY_VERIFY_WITH_TIMEOUT(
        [&] {
          const int before = told;
          std::vector<Delivery> some = pipe->take();
          all.insert(all.end(), some.begin(), some.end());
          return all.size() == kAsked && before >= 1;
        }(),
        60'000);
    QVERIFY2(told < kAsked / 10, qPrintable(QString::number(told)));
    for (int i = 0; i < kAsked; ++i)
      QCOMPARE(all[static_cast<std::size_t>(i)].response->id(), static_cast<std::uint64_t>(i + 1));
    QMetaObject::invokeMethod(pipe, &WorkerPipe::close, Qt::BlockingQueuedConnection);
    thread.quit();
    thread.wait();
  }

  void stoppedWorkerIsNoticed() {
    auto w = window("stop");
    QVERIFY(build(*w));
    w->session().step(1);
    QTRY_COMPARE_WITH_TIMEOUT(w->store().workerState(), WorkerState::kUnresponsive, 60'000);
    QTRY_COMPARE(w->findChild<QPushButton*>(QStringLiteral("notice_action"))->text(), QStringLiteral("Restart worker"));
    qunsetenv("FAKE_FAULT");
    w->session().restart();
    QTRY_VERIFY_WITH_TIMEOUT(w->session().built() && w->store().workerState() == WorkerState::kIdle, 60'000);
  }

  void aRunIsRecordedReportedAndOpenedAgain() {
    QTemporaryDir folder;
    const QString project = folder.filePath(QStringLiteral("run.stepscope"));
    {
      auto w = window();
      w->setProjectPath(project);
      QVERIFY(build(*w));
      w->session().train(5);
      QVERIFY(settled(*w));
      for (const char* name : {"r.html", "r.json", "r.csv", "r.trace.json", "r.pdf"}) {
        const QString path = folder.filePath(QLatin1String(name));
        w->recording().queries().report(path);
        QVERIFY(QTest::qWaitFor([&w] { return w->recording().idle(); }, 60'000));
        QTRY_VERIFY2(QFileInfo(path).size() > 100, qPrintable(path + ' ' + w->notice().text()));
      }
      for (const char* name : {"v.png", "v.svg", "v.pdf"}) {
        const QString path = folder.filePath(QLatin1String(name));
        QCOMPARE(writePicture(*w->board().activeView(), path), QString());
        QVERIFY(QFileInfo(path).size() > 100);
      }
      // Its letters are as large as on the screen, where their places come from.
      const QString map = folder.filePath(QStringLiteral("memory.svg"));
      w->board().show(QStringLiteral("memory"));
      QCOMPARE(writePicture(*w->board().find(QStringLiteral("memory")), map), QString());
      QFile svg(map);
      QVERIFY(svg.open(QIODevice::ReadOnly));
      static const QRegularExpression kSize(QStringLiteral("font-size=\"([\\d.]+)\""));
      double largest = 0;
      for (auto all = kSize.globalMatch(QString::fromUtf8(svg.readAll())); all.hasNext();)
        largest = std::max(largest, all.next().captured(1).toDouble());
      QVERIFY2(largest > QFontMetricsF(smallFont()).height() * 0.7, qPrintable(QString::number(largest)));
      emit w->wishes().runSql(QStringLiteral("SELECT count(*) FROM steps"));
      QTRY_COMPARE_WITH_TIMEOUT(w->store().project().sql().rows.size(), std::size_t{1}, 60'000);
      QCOMPARE(w->store().project().sql().rows[0][0], QStringLiteral("5"));
    }
    auto w = window();
    w->openPath(project);
    QTRY_VERIFY_WITH_TIMEOUT(w->store().readOnly() && w->store().plan(), 60'000);
    QCOMPARE(w->store().steps().size(), std::size_t{5});
    QCOMPARE(w->store().project().runs().size(), std::size_t{1});
    QVERIFY(w->store().timing(3).ns > 0);
  }

  void missingModelIsAProblemNotACrash() {
    auto w = window();
    w->openPath(QStringLiteral("/nowhere/missing.onnx"));
    QTRY_VERIFY_WITH_TIMEOUT(w->notice().isProblem(), 60'000);
    QVERIFY(w->notice().text().contains(QStringLiteral("missing")));
  }

  void everyActionHasATipAndKeysAreUnique() {
    auto w = window();
    QSet<QString> keys;
    for (const QAction* action : w->actions().all()) {
      QVERIFY2(!action->statusTip().isEmpty(), qPrintable(action->objectName()));
      for (const QKeySequence& key : action->shortcuts()) {
        QVERIFY2(!keys.contains(key.toString()), qPrintable(key.toString()));
        keys << key.toString();
      }
    }
  }

  void wrongCommandLinesAreRefused() {
    Arguments a;
    QCOMPARE(parseArguments({"p", "--theme", "pink"}, &a), std::optional<int>(2));
    QCOMPARE(parseArguments({"p", "a", "b"}, &a), std::optional<int>(2));
    QCOMPARE(parseArguments({"p", "--set", "lr"}, &a), std::optional<int>(2));
    QCOMPARE(parseArguments({"p", "m.onnx", "--steps", "3", "--set", "lr=0.1"}, &a), std::optional<int>());
    QCOMPARE(a.configuration.settings(0).value(), std::string("0.1"));
  }
};

SS_QT_CLASS(QApplication, WorkbenchTest)
#include "tst_workbench.moc"
