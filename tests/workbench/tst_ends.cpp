// SPDX-License-Identifier: GPL-3.0-or-later
// How a window ends, and what it leaves: the program itself, asked to end or killed.
#include <sys/wait.h>
#include <unistd.h>

#include <QDir>
#include <QProcess>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>

#include "app/workbench/end_signals.h"
#include "app/workbench/end_watch.h"
#include "app/workbench/kept_training.h"
#include "app/workbench/main_window.h"
#include "app/workbench/scratch_folder.h"
#include "tests/support/qt_classes.h"
#include "views/common/tokens.h"

using namespace stepscope;

namespace {

constexpr int kMs = 120'000;

// The program with folders of its own.
class Program {
 public:
  Program() {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
    environment.insert(QStringLiteral("STEPSCOPE_WORKER"), QStringLiteral(REAL_WORKER));
    for (const char* name : {"TMPDIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}) {
      QDir(home_.path()).mkdir(QLatin1String(name));
      environment.insert(QLatin1String(name), home_.filePath(QLatin1String(name)));
    }
    process_.setProcessEnvironment(environment);
  }
  ~Program() {
    process_.kill();
    process_.waitForFinished();
  }

  QProcess& process() { return process_; }
  void start(const QStringList& arguments = {}) {
    process_.start(QStringLiteral(WORKBENCH), arguments);
    QVERIFY(process_.waitForStarted());
  }
  // A model is built and the window keeps where it stands.
  void startTraining(const QStringList& more = {}) {
    start(QStringList{QStringLiteral(SOURCE_FOLDER "/app/samples/digits/model.onnx"), QStringLiteral("--set"),
                      QStringLiteral("lr=0.1")} +
          more);
    QTRY_VERIFY_WITH_TIMEOUT(places().size() == 1, kMs);
  }
  void signal(int number) { ::kill(static_cast<pid_t>(process_.processId()), number); }

  QList<qint64> children() const {
    QList<qint64> list;
    const QDir tasks(QStringLiteral("/proc/%1/task").arg(process_.processId()));  // each lists those that it started
    for (const QString& task : tasks.entryList(QDir::Dirs | QDir::NoDotAndDotDot)) {
      QFile file(tasks.filePath(task + QStringLiteral("/children")));
      if (!file.open(QIODevice::ReadOnly)) continue;
      for (const QByteArray& id : file.readAll().split(' '))
        if (id.toLongLong() > 0) list << id.toLongLong();
    }
    return list;
  }
  QString data(const QString& folder) const {
    return home_.filePath(QStringLiteral("XDG_DATA_HOME/stepscope/stepscope-workbench/") + folder);
  }
  QStringList places() const { return QDir(data(QStringLiteral("sessions"))).entryList({QStringLiteral("*.json")}); }
  bool stands(std::int64_t step) const {
    const QStringList files = places();
    if (files.isEmpty()) return false;
    const auto place = readPlace(data(QStringLiteral("sessions/") + files[0]), nullptr);
    return place && place->step == step;
  }
  QStringList scratch() const {
    return QDir(scratchAmong()).entryList({QStringLiteral("stepscope-workbench-*")}, QDir::Dirs);
  }
  QString scratchAmong() const { return home_.filePath(QStringLiteral("TMPDIR")); }

 private:
  QTemporaryDir home_;
  QProcess process_;
};

}  // namespace

class EndsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void aSignalIsToldInTheLoop() {
    EndSignals ends;
    int told = 0;
    connect(&ends, &EndSignals::asked, this, [&told] { ++told; });
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
      std::raise(number);
      QTRY_COMPARE(told, 1);
      told = 0;
    }
  }

  void whoIsAskedToEndEndsAsWithTheCloseButton_data() {
    QTest::addColumn<int>("number");
    QTest::newRow("SIGTERM") << SIGTERM;
    QTest::newRow("SIGINT") << SIGINT;
    QTest::newRow("SIGHUP") << SIGHUP;
  }
  void whoIsAskedToEndEndsAsWithTheCloseButton() {
    QFETCH(int, number);
    Program program;
    program.startTraining();
    QVERIFY(!program.scratch().isEmpty());
    program.signal(number);
    QVERIFY(program.process().waitForFinished(kMs));
    QCOMPARE(program.process().exitStatus(), QProcess::NormalExit);
    QCOMPARE(program.process().exitCode(), 0);
    QCOMPARE(program.places(), QStringList());
    QCOMPARE(program.scratch(), QStringList());
  }

  // Without a display it says so and ends; a picture needs none.
  void withoutADisplayItSaysSo() {
    Program program;
    QProcessEnvironment bare = program.process().processEnvironment();
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) bare.remove(QLatin1String(name));
    program.process().setProcessEnvironment(bare);
    const QString digits = QStringLiteral(SOURCE_FOLDER "/app/samples/digits/model.onnx");
    program.start({digits});
    QVERIFY(program.process().waitForFinished(kMs));
    QCOMPARE(program.process().exitStatus(), QProcess::NormalExit);
    QCOMPARE(program.process().exitCode(), 1);
    const QString told = QString::fromUtf8(program.process().readAllStandardError());
    QVERIFY2(told.startsWith(QStringLiteral("error: window: no display; expected DISPLAY or WAYLAND_DISPLAY")),
             qPrintable(told));
    const QTemporaryDir folder;
    const QString picture = folder.filePath(QStringLiteral("window.png"));
    program.start({digits, QStringLiteral("--screenshot"), picture});
    QVERIFY(program.process().waitForFinished(kMs));
    QCOMPARE(program.process().exitCode(), 0);
    QVERIFY(QFileInfo(picture).size() > 0);
  }

  // A script that draws pictures learns what was wrong: on stderr and by the exit code.
  void theCommandLineTellsWhatItDoesNotTake_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("told");
    const QString digits = QStringLiteral(SOURCE_FOLDER "/app/samples/digits/model.onnx");
    const auto row = [](const char* name, const QStringList& arguments, int code, const char* told) {
      QTest::newRow(name) << arguments << code << QString::fromLatin1(told);
    };
    row("show", {digits, "--show", "nonsense"}, 2, "error: option 'show': nonsense; expected one of alerts");
    row("layout", {digits, "--layout", "Bogus"}, 2, "error: option 'layout': Bogus; expected one of Explore, Step");
    row("size", {digits, "--size", "large"}, 2, "error: option 'size': large; expected such as 1280x800");
    row("no file", {"/nowhere/model.onnx"}, 1, "'/nowhere/model.onnx'");
    row("no project", {"/nowhere/p.stepscope"}, 1, "/nowhere/p.stepscope");
    row("set", {digits, "--set", "lrr=1"}, 1, "lrr");
    row("run-to", {digits, "--run-to", "9999"}, 1, "error: option 'run-to': 9999; expected a number from 0 to ");
    row("select", {digits, "--run-to", "2", "--select", "9999"}, 1,
        "error: option 'select': 9999; expected a number from 0");
    row("right", {digits, "--run-to", "3", "--show", "TENSOR", "--show", "sql", "--layout", "step"}, 0, "");
  }
  void theCommandLineTellsWhatItDoesNotTake() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QString, told);
    QTemporaryDir folder;
    const QString picture = folder.filePath(QStringLiteral("picture.png"));
    Program program;
    program.start(arguments + QStringList{QStringLiteral("--screenshot"), picture});
    QVERIFY(program.process().waitForFinished(kMs));
    const QString said = QString::fromUtf8(program.process().readAllStandardError());
    QCOMPARE(program.process().exitStatus(), QProcess::NormalExit);
    QVERIFY2(program.process().exitCode() == code && said.contains(told), qPrintable(said));
    QCOMPARE(QFileInfo::exists(picture), code == 0);
    QVERIFY2(code == 0 || said.count(QStringLiteral("error:")) == 1, qPrintable(said));
  }

  // As Ctrl+Q does. Who ends a session tells the worker, too.
  void whoIsAskedToEndKeepsTheTraining() {
    Program program;
    program.startTraining({QStringLiteral("--steps"), QStringLiteral("5")});
    QTRY_VERIFY_WITH_TIMEOUT(program.stands(5), kMs);
    QVERIFY(!program.children().isEmpty());
    for (const qint64 worker : program.children()) ::kill(static_cast<pid_t>(worker), SIGTERM);
    program.signal(SIGTERM);
    QVERIFY(program.process().waitForFinished(kMs));
    QCOMPARE(program.process().exitStatus(), QProcess::NormalExit);
    QCOMPARE(program.process().exitCode(), 0);
    QCOMPARE(program.places(), QStringList());
    const QDir projects(program.data(QStringLiteral("projects")));
    const QStringList files = projects.entryList({QStringLiteral("*.stepscope")});
    QCOMPARE(files.size(), 1);
    QString problem;
    const auto place = KeptTraining::find(projects.filePath(files[0]), 0, &problem);
    QVERIFY2(place, qPrintable(problem + projects.entryList().join(' ')));
    QCOMPARE(place->step, 5);
  }

  // A loop that never turns again does not keep the process.
  void whoDoesNotComeToTheEndIsEnded() {
    const pid_t child = fork();
    if (child == 0) {
      endSoon();
      for (;;) pause();
    }
    int status = 0;
    QCOMPARE(waitpid(child, &status, 0), child);
    QVERIFY(WIFEXITED(status));
    QCOMPARE(WEXITSTATUS(status), 1);
  }

  // A worker that answers nothing does not hold up the end.
  void aStoppedWorkerDoesNotHoldUpTheEnd() {
    Program program;
    program.startTraining();
    for (const qint64 worker : program.children()) ::kill(static_cast<pid_t>(worker), SIGSTOP);
    QVERIFY(!program.children().isEmpty());
    program.signal(SIGTERM);
    QVERIFY(program.process().waitForFinished(kMs));
    QCOMPARE(program.process().exitStatus(), QProcess::NormalExit);
    QCOMPARE(program.process().exitCode(), 0);
    QCOMPARE(program.scratch(), QStringList());
  }

  void whatAKilledWindowLeftIsSweptByTheNext() {
    Program program;
    program.startTraining();
    const QStringList left = program.scratch();
    QVERIFY(!left.isEmpty());
    QCOMPARE(ScratchFolder::sweep(program.scratchAmong()), 0);  // its process is there
    QCOMPARE(program.scratch(), left);
    program.signal(SIGKILL);
    QVERIFY(program.process().waitForFinished(kMs));
    QCOMPARE(program.scratch(), left);
    // Folders that are not this program's, or that nobody can tell the process of, stay.
    const QDir among(program.scratchAmong());
    for (const char* name : {"stepscope-workbench-nobody", "stepscope-other"}) QVERIFY(among.mkdir(QLatin1String(name)));
    QVERIFY(QFile::link(QDir::tempPath(), among.filePath(QStringLiteral("stepscope-workbench-link"))));
    program.start();
    QTRY_VERIFY_WITH_TIMEOUT(
        std::none_of(left.begin(), left.end(), [&among](const QString& name) { return among.exists(name); }), kMs);
    QVERIFY(among.exists(QStringLiteral("stepscope-workbench-nobody")) && among.exists(QStringLiteral("stepscope-other")) &&
            among.exists(QStringLiteral("stepscope-workbench-link")));
    QVERIFY(!program.scratch().isEmpty());
    program.signal(SIGTERM);
    QVERIFY(program.process().waitForFinished(kMs));
  }

  void aFolderGoesWithItsOwner() {
    QTemporaryDir among;
    QString path;
    {
      const ScratchFolder folder(among.path());
      path = folder.path();
      QVERIFY(folder.isValid() && path.startsWith(among.path()));
      QFile file(folder.filePath(QStringLiteral("state")));
      QVERIFY(file.open(QIODevice::WriteOnly));
      QCOMPARE(ScratchFolder::sweep(among.path()), 0);
      QVERIFY(QFileInfo::exists(path));
    }
    QVERIFY(!QFileInfo::exists(path));
  }

  // The desktop's session ends: nothing is asked about at the next start, and the window may go on.
  void theEndOfASessionIsNoCrash() {
    Program program;  // for its folders alone
    qputenv("XDG_DATA_HOME", QFile::encodeName(program.scratchAmong()));
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, program.scratchAmong());
    const auto places = [] {
      return QDir(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/sessions"))
          .entryList({QStringLiteral("*.json")}, QDir::Files);
    };
    MainWindow window(true);
    window.show();
    window.openAndBuild(QStringLiteral(SOURCE_FOLDER "/app/samples/digits/model.onnx"), {});
    QTRY_COMPARE_WITH_TIMEOUT(places().size(), 1, kMs);
    window.leave();
    QCOMPARE(places().size(), 0);
    QTRY_VERIFY_WITH_TIMEOUT(!window.session().busy() && window.session().client().openRequests() == 0, kMs);
    window.session().step(1);
    QTRY_COMPARE_WITH_TIMEOUT(places().size(), 1, kMs);  // it goes on after all
    window.close();
    QCOMPARE(places().size(), 0);
  }
};

SS_QT_CLASS(QApplication, EndsTest)
#include "tst_ends.moc"
