// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are not what they are taken for, that cannot be written, that another window has; coming back after the window
// died.
#include <signal.h>
#include <unistd.h>

#include <QJsonDocument>
#include <QListWidget>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTest>
#include <algorithm>

#include "app/workbench/places.h"
#include "app/workbench/project_reader.h"
#include "app/workbench/session/source_marks.h"
#include "app/workbench/session_mark.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/made_models.h"
#include "tests/workbench/window_driver.h"
#include "views/common/file_name.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

class FilesTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // A rewind and a new worker read files again; they may hold something else by then.
  void aFileThatIsWrittenWhileItsRunGoesOnIsSaid() {
    QTemporaryDir folder;
    const TestModel digits = bundledModels()[0];
    const QString model = folder.filePath(QStringLiteral("model.onnx")),
                  data = folder.filePath(QStringLiteral("batches.npz"));
    QVERIFY(QFile::copy(digits.model, model) && QFile::copy(digits.data, data));
    const auto writeAgain = [](const QString& path) {
      QFile file(path);
      if (!file.open(QIODevice::ReadWrite)) return false;
      return file.setFileTime(QDateTime::currentDateTime().addSecs(60), QFileDevice::FileModificationTime);
    };
    WindowDriver w;
    const auto told = [&w](const QString& path) {
      const auto& alerts = w->store().alerts();
      return std::count_if(alerts.begin(), alerts.end(), [&path](const snapshot::Alert& alert) {
        return alert.code() == "file_changed" && QString::fromStdString(alert.message()).contains(path);
      });
    };
    QVERIFY_DONE(w.build({digits.name, model, data}), w);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().rewind(2); });
    QVERIFY(w.loop().wait([&] { return w->store().position().step() == 2 && !w->session().busy(); }));
    QCOMPARE(told(data), 0);
    QVERIFY(writeAgain(data));
    w.loop().act([&] { w->session().rewind(1); });
    QVERIFY(w.loop().wait([&] { return told(data) == 1; }));
    QVERIFY2(w->notice().isProblem() && w->notice().text().contains(QStringLiteral("was written again")),
             qPrintable(w->notice().text()));
    QCOMPARE(told(model), 0);
    QVERIFY(writeAgain(model));
    w.loop().act([&] { w->session().client().kill(); });
    QVERIFY(w.loop().wait([&] { return !w->session().client().alive(); }));
    w.loop().act([&] { w->session().restart(); });
    QVERIFY(w.loop().wait([&] { return told(model) == 1 && !w->session().busy(); }));
    QCOMPARE(told(data), 1);
  }

  // Weights beside the model, and the files of a folder of data, are files of the run too.
  void otherFilesOfARunAreWatchedToo() {
    QTemporaryDir folder;
    const QString model = folder.filePath(QStringLiteral("model.onnx")), weights = folder.filePath(QStringLiteral("w.bin")),
                  data = folder.filePath(QStringLiteral("data"));
    const auto write = [](const QString& path, const QByteArray& bytes) {
      QFile file(path);
      return file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size();
    };
    const std::string bytes = testing::externalModel("w.bin");
    QVERIFY(write(model, QByteArray::fromStdString(bytes)) && write(weights, QByteArray(64, '\0')));
    QVERIFY(QDir().mkpath(data) && write(data + QStringLiteral("/notes.txt"), "x"));
    SourceMarks marks;
    marks.take({data, folder.filePath(QStringLiteral("none"))});
    QVERIFY(marks.takeChanges().isEmpty());
    QVERIFY(write(data + QStringLiteral("/notes.txt"), "longer"));
    QCOMPARE(marks.takeChanges().size(), 1);
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt({{}, model, {}}), w);
    QCOMPARE(w->store().model()->external_files_size(), 1);
    for (int i = 0; i < 2; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(write(weights, QByteArray(64, '\0') + QByteArray(64, '\1')));
    w.loop().act([&] { w->session().client().kill(); });
    QVERIFY(w.loop().wait([&] { return !w->session().client().alive(); }));
    w.loop().act([&] { w->session().restart(); });
    const auto told = [&] {
      return std::ranges::any_of(w->store().alerts(), [&](const snapshot::Alert& alert) {
        return alert.code() == "file_changed" && QString::fromStdString(alert.message()).contains(weights);
      });
    };
    QVERIFY(w.loop().wait([&] { return told() && !w->session().busy(); }));
  }

  // What is open stays open.
  void whatIsNoModelSaysSo() {
    QTemporaryDir folder;
    const auto write = [&folder](const char* name, const QByteArray& content) {
      const QString path = folder.filePath(QLatin1String(name));
      QDir().mkpath(QFileInfo(path).path());
      QFile file(path);
      if (file.open(QIODevice::WriteOnly)) file.write(content);
      return path;
    };
    write("plain/readme.txt", "hello");
    write("two/a.onnx", "a");
    write("two/b.onnx", "b");
    write("runs/a.stepscope", "a");
    write("runs/b.stepscope", "b");
    QDir(folder.path()).mkdir(QStringLiteral("folder.stepscope"));
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const std::pair<QString, QString> refused[] = {
        {folder.filePath(QStringLiteral("plain")), QStringLiteral("folder with model.onnx")},
        {folder.filePath(QStringLiteral("two")), QStringLiteral("2 models in it")},
        {folder.filePath(QStringLiteral("runs")), QStringLiteral("2 recorded projects in it, a.stepscope the first")},
        {folder.filePath(QStringLiteral("folder.stepscope")), QStringLiteral("no model in it")},
        {folder.filePath(QStringLiteral("none.onnx")), QStringLiteral("no such file")},
        {write("empty.onnx", {}), QStringLiteral("expected an ONNX model")},
        {write("empty.stepscope", {}), QStringLiteral("expected a recorded")},
        {write("text.stepscope", QByteArray(4096, 'x')), QStringLiteral("expected a .stepscope file")}};
    for (const auto& [path, told] : refused) {
      w.loop().act([&, path = path] { w->openPath(path); });
      QVERIFY2(w.loop().wait([&] { return w->notice().isProblem(); }, 20'000), qPrintable(path));
      QVERIFY2(w->notice().text().contains(told), qPrintable(w->notice().text()));
      QVERIFY2(w->session().built() && w->store().steps().size() == 1, qPrintable(path));
      w.loop().act([&] { w->notice().clear(); });
    }
    QVERIFY_DONE(w.act("step"), w);
    // A capture is a folder.
    QDir(folder.path()).mkdir(QStringLiteral("capture"));
    QVERIFY(QFile::copy(bundledModels()[0].model, folder.filePath(QStringLiteral("capture/model.onnx"))));
    w.loop().act([&] { w->openPath(folder.filePath(QStringLiteral("capture"))); });
    SetUpDialog* offered = nullptr;
    QVERIFY(w.loop().wait([&] {
      for (auto* found : w->findChildren<SetUpDialog*>())
        if (found->isVisible()) offered = found;
      return offered != nullptr;
    }));
    w.loop().act([&] { offered->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] {
      return w->session().modelPath() == folder.filePath(QStringLiteral("capture/model.onnx")) && w->session().built() &&
             !w->session().busy();
    }));
    QVERIFY_LOOP(w);
  }

  // Of any name: with the settings of a command line, and one with nothing but what was recorded.
  void aFolderIsWhatIsInIt() {
    const QTemporaryDir folder;
    const QString model = folder.filePath(QStringLiteral("Modelle für später")),
                  recorded = folder.filePath(QStringLiteral("runs"));
    QVERIFY(QDir().mkpath(model) && QDir().mkpath(recorded));
    QVERIFY(QFile::copy(bundledModels()[0].model, model + QStringLiteral("/only.onnx")));
    QString project;
    {
      WindowDriver w;
      w.loop().act([&] { w->openAndBuild(model + '/', {}); });
      QVERIFY2(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }), qPrintable(w->notice().text()));
      QCOMPARE(w->session().modelPath(), model + QStringLiteral("/only.onnx"));
      QVERIFY_DONE(w.act("step_whole"), w);
      QVERIFY(w.recorded());
      project = w->store().project().projectPath();
      QVERIFY(w.settled());
      w.loop().act([&] { w->session().close(); });  // the run ends, and the file is whole
      QVERIFY(w.recorded());
      QVERIFY(QFile::copy(project, recorded + QStringLiteral("/digits.stepscope")));
    }
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(recorded), w);
    QVERIFY(w->store().readOnly() && w->store().series().size() == 1);
  }

  // Nor does a file that only its reading shows to be none, or not a sound one, whatever happens meanwhile.
  void whatIsOpenStaysUntilTheNextModelWasRead() {
    QTemporaryDir folder;
    QFile good(bundledModels()[1].model);
    QVERIFY(good.open(QIODevice::ReadOnly));
    QByteArray dangling = good.readAll();
    const qsizetype at = dangling.indexOf("labels");
    QVERIFY(at > 0);
    dangling[at] = 'L';
    const auto write = [&folder](const char* name, const QByteArray& content) {
      const QString path = folder.filePath(QLatin1String(name));
      QFile file(path);
      if (file.open(QIODevice::WriteOnly)) file.write(content);
      return path;
    };
    const QString files[] = {write("noise.onnx", QByteArray(5000, 'x')), write("dangling.onnx", dangling)};
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const QString model = w->session().modelPath();
    QVERIFY_DONE(w.act("step_whole"), w);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step"), w);
    const auto stays = [&] {
      return w->session().built() && w->session().modelPath() == model && w->store().plan() &&
             w->store().model()->problems_size() == 0 && w.instruction() == 3 && w->store().position().step() == 1 &&
             w->store().steps().size() == 1;
    };
    for (const QString& path : files) {
      SetUpDialog* dialog = w.open(path);
      QVERIFY2(dialog || !w.failure().isEmpty(), qPrintable(path));
      if (dialog) {
        QVERIFY(!dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->isEnabled());
        QVERIFY(dialog->windowTitle().contains(QFileInfo(path).fileName()));
        dialog->reject();
      }
      QVERIFY(w.settled());
      QVERIFY2(stays(), qPrintable(path));
      QVERIFY2(w->notice().text().contains(QFileInfo(path).fileName()), qPrintable(w->notice().text()));
      w.loop().act([&] { w->notice().clear(); });
      QVERIFY(w->windowTitle().contains(format::fileName(model)));
    }
    // The values are still those of the model that stayed.
    QVERIFY(w.select(Selection::ofInstruction(2)));
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.loop().wait([&w] { return w.shownTensor() && w.shownTensor()->unavailable().empty(); }, 10'000));
    // After a worker that died the model comes back with the next one, though that was asked for another file.
    QVERIFY(!childProcesses().empty());
    kill(childProcesses().front(), SIGKILL);
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }, 20'000));
    w.loop().act([&] { w->openPath(files[0]); });
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kIdle && !w->session().busy() && stays(); },
                          60'000));
    for (auto* dialog : w->findChildren<SetUpDialog*>()) dialog->reject();
    QVERIFY_DONE(w.act("step"), w);
    QCOMPARE(w.instruction(), 4);
    // Asked for in a run, the run goes on: nothing of what is open was given up.
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() >= 3; }));
    w.open(files[0]);
    for (auto* dialog : w->findChildren<SetUpDialog*>()) dialog->reject();
    QVERIFY(w->session().running());
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QVERIFY(w->session().built() && !w->session().running() && w->session().modelPath() == model &&
            w->store().steps().size() >= 3);
    QVERIFY_DONE(w.act("step"), w);
    // And a sound one takes its place.
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    QCOMPARE(w->session().modelPath(), bundledModels()[1].model);
    QVERIFY(w->store().steps().empty());
    QVERIFY_LOOP(w);
  }

  void aRunThatCannotBeWrittenThereIsRecordedElsewhere() {
    QTemporaryDir folder;
    QFile file(folder.filePath(QStringLiteral("file")));
    QVERIFY(file.open(QIODevice::WriteOnly));
    const QString wanted = folder.filePath(QStringLiteral("file/run.stepscope"));  // no folder can be made there
    WindowDriver w;
    w->setProjectPath(wanted);
    QVERIFY(w.build(bundledModels()[0]) || w->notice().isProblem());
    QVERIFY(w.recorded());
    QVERIFY2(w.loop().wait([&] { return w->notice().text().contains(QStringLiteral("is recorded in")); }, 10'000),
             qPrintable(w->notice().text()));
    const QString path = w->store().project().projectPath();
    QVERIFY2(QFileInfo::exists(path) && path != wanted && w->notice().text().contains(path), qPrintable(path));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    const QString report = folder.filePath(QStringLiteral("r.html"));
    w.loop().act([&] { w->recording().queries().report(report); });
    QVERIFY(w.recorded());
    QVERIFY(QFileInfo(report).size() > 0);
    // Nor can a report be written there: each form says so once, with what to do.
    for (const char* ending : {"html", "json", "csv", "pdf"}) {
      w.loop().act([&] {
        w->notice().clear();
        w->recording().queries().report(folder.filePath(QStringLiteral("file/r.") + QLatin1String(ending)));
      });
      QVERIFY2(w.loop().wait([&] { return w->notice().isProblem(); }, 20'000), ending);
      QCOMPARE(w->notice().text().count(QStringLiteral("report '")), 1);
      QVERIFY2(w->notice().text().contains(QStringLiteral("folder")) &&
                   w->notice().text().contains(QStringLiteral("file/r.") + QLatin1String(ending)),
               qPrintable(w->notice().text()));
    }
    QDir(QFileInfo(path).path()).removeRecursively();
  }

  // As its window leaves it when it is killed, in a folder that nobody may write.
  void whatAKilledWindowRecordedIsReadWhereNothingCanBeWritten() {
    QTemporaryDir folder;
    const QString project = folder.filePath(QStringLiteral("run.stepscope")),
                  left = folder.filePath(QStringLiteral("left/run.stepscope"));
    QDir(folder.path()).mkdir(QStringLiteral("left"));
    WindowDriver writer;
    writer->setProjectPath(project);
    QVERIFY_DONE(writer.build(bundledModels()[0]), writer);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(writer.act("step_whole"), writer);
    QVERIFY(writer.recorded());
    QVERIFY(writer.loop().wait([&] {
      return !writer->store().project().runs().empty() && writer->store().project().runs()[0].steps >= 3 &&
             writer->recording().idle();
    }));
    for (const char* rest : {"", "-wal"}) QVERIFY(QFile::copy(project + QLatin1String(rest), left + QLatin1String(rest)));
    QVERIFY(QFileInfo(left + QStringLiteral("-wal")).size() > 0);
    QTemporaryDir copies;
    const QString copy = copyWithRest(left, copies.path());
    const auto read = readProject(copy, 0);
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    QCOMPARE(read->steps.size(), std::size_t{3});
    QVERIFY(copyWithRest(folder.filePath(QStringLiteral("none.stepscope")), copies.path()).isEmpty());
    if (geteuid() == 0) QSKIP("the rest needs a user whom permissions bind");
    QVERIFY(QFile::setPermissions(folder.filePath(QStringLiteral("left")), QFile::ReadOwner | QFile::ExeOwner));
    WindowDriver reader;
    QVERIFY_DONE(reader.openRecorded(left), reader);
    QCOMPARE(reader->store().steps().size(), std::size_t{3});
    QFile::setPermissions(folder.filePath(QStringLiteral("left")), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
  }

  void aPlaceIsLostOnlyWithItsWindow() {
    QTemporaryDir folder;
    SessionPlace place;
    place.path = QStringLiteral("/models/a.onnx");
    place.configuration = QByteArray("\x01\x00\xff", 3);
    place.step = 7;
    place.instruction = 12;
    place.selectedInstruction = 3;
    place.selectedValue = 4;
    place.edited = true;
    SessionMark window(folder.path()), next(folder.path());
    window.keep(place);
    QVERIFY(!next.takeLost());  // it is there
    const QStringList files = QDir(folder.path()).entryList({QStringLiteral("*.json")});
    QCOMPARE(files.size(), 1);
    // A killed window leaves the file, and a lock of nobody.
    QVERIFY(QFile::copy(folder.filePath(files[0]), folder.filePath(QStringLiteral("killed.json"))));
    QVERIFY(!next.takeLost(nullptr, QStringLiteral("/models/b.onnx")));
    const auto ofModel = next.takeLost(nullptr, place.path);
    QVERIFY(ofModel && *ofModel == place);
    QVERIFY(!next.takeLost(nullptr, place.path));
    QVERIFY(QFile::copy(folder.filePath(files[0]), folder.filePath(QStringLiteral("killed.json"))));
    const auto lost = next.takeLost();
    QVERIFY(lost && *lost == place);
    QVERIFY(!next.takeLost());
    QVERIFY(QFileInfo::exists(folder.filePath(files[0])));
    window.drop();
    QVERIFY(QDir(folder.path()).entryList({QStringLiteral("*.json")}).isEmpty());
    // What is no place is none.
    QFile broken(folder.filePath(QStringLiteral("broken.json")));
    QVERIFY(broken.open(QIODevice::WriteOnly) && broken.write("{\"path\":") > 0);
    broken.close();
    QVERIFY(!next.takeLost());
  }

  void afterACrashOneClickGoesBack() {
    QTemporaryDir home;
    const QByteArray data = qgetenv("XDG_DATA_HOME");
    qputenv("XDG_DATA_HOME", home.path().toUtf8());
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, home.path());
    const QString sessions =
        QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + QStringLiteral("/sessions");
    const auto files = [&sessions] { return QDir(sessions).entryList({QStringLiteral("*.json")}, QDir::Files); };
    ViewLayout arranged;
    const auto quiet = [](MainWindow& w) {
      return w.session().built() && !w.session().busy() && !w.session().running() &&
             w.session().client().openRequests() == 0;
    };
    {
      MainWindow window(true);
      window.show();
      snapshot::Configure configuration;
      auto* setting = configuration.add_settings();
      setting->set_name("data");
      setting->set_value(bundledModels()[0].data.toStdString());
      window.openAndBuild(bundledModels()[0].model, configuration);
      QTRY_VERIFY_WITH_TIMEOUT(quiet(window), 60'000);
      window.session().train(4);
      QTRY_VERIFY_WITH_TIMEOUT(quiet(window) && window.store().position().step() == 4, 60'000);
      window.session().runTo(6);
      QTRY_VERIFY_WITH_TIMEOUT(quiet(window) && window.store().position().instruction() == 6, 60'000);
      window.session().toggleBreakpoint(9);
      window.selection().select(Selection::ofInstruction(2));
      window.applyLayout(QStringLiteral("Memory"));
      window.board().show(QStringLiteral("alerts"));
      window.board().move(QStringLiteral("alerts"), Area::kLeft);
      // A second it waits before it writes, so that stepping does not write with every key.
      const auto written = [&] {
        if (files().size() != 1) return false;
        const QJsonObject mark = QJsonDocument::fromJson(textOf(sessions + '/' + files()[0]).toUtf8()).object();
        arranged = ViewLayout::fromJson(
            QJsonDocument::fromJson(QByteArray::fromBase64(mark[QStringLiteral("layout")].toString().toLatin1())).object());
        return mark[QStringLiteral("selected_instruction")].toInt() == 2 && arranged.name == u"Memory" &&
               arranged.views[0].contains(QStringLiteral("alerts"));
      };
      QTRY_VERIFY_WITH_TIMEOUT(written(), 30'000);
      QVERIFY(QFile::copy(sessions + '/' + files()[0], home.filePath(QStringLiteral("kept"))));
      window.close();  // when what was trained is kept
      QTRY_VERIFY_WITH_TIMEOUT(!window.isVisible(), 60'000);
      QVERIFY(files().isEmpty());  // it ended as it should
    }
    QVERIFY(QFile::copy(home.filePath(QStringLiteral("kept")), sessions + QStringLiteral("/killed.json")));
    MainWindow window(true);
    window.show();
    window.applyLayout(QStringLiteral("Explore"));  // the one that the settings keep is not what is asked for here
    window.offerReturn();
    QVERIFY2(window.notice().text().contains(QStringLiteral("step 4, before instruction 6")),
             qPrintable(window.notice().text()));
    auto* button = window.notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY(button && button->isVisible());
    button->click();
    QTRY_VERIFY_WITH_TIMEOUT(quiet(window) && window.store().position().instruction() == 6, 60'000);
    QTRY_COMPARE_WITH_TIMEOUT(window.selection().selection().instruction, 2, 60'000);
    QCOMPARE(window.store().position().step(), 4);
    QCOMPARE(window.store().steps().size(), std::size_t{4});
    const ViewLayout shown = window.board().present(QStringLiteral("Memory"));
    QVERIFY2(shown.views == arranged.views && shown.front == arranged.front,
             QJsonDocument(shown.toJson()).toJson().constData());
    QVERIFY(shown.views[0].contains(QStringLiteral("alerts")));
    const auto& breaks = window.store().breakpoints();
    QVERIFY(std::any_of(breaks.begin(), breaks.end(), [](const auto& b) {
      return b.condition_case() == snapshot::Breakpoint::kInstruction && b.instruction() == 9;
    }));
    window.close();
    // Who opens the model, as a double click on it does, is asked too, and goes back to where the window crashed rather than
    // to where one was closed before.
    QTRY_VERIFY_WITH_TIMEOUT(!window.isVisible(), 60'000);
    QVERIFY(QFile::copy(home.filePath(QStringLiteral("kept")), sessions + QStringLiteral("/killed.json")));
    {
      MainWindow fromModel(true);
      fromModel.show();
      fromModel.openPath(bundledModels()[0].model);
      QTRY_VERIFY_WITH_TIMEOUT(fromModel.notice().text().contains(QStringLiteral("did not end as it should")), 60'000);
      fromModel.notice().findChild<QPushButton*>(QStringLiteral("notice_action"))->click();
      QTRY_VERIFY_WITH_TIMEOUT(quiet(fromModel) && fromModel.store().position().instruction() == 6, 60'000);
      QCOMPARE(fromModel.store().position().step(), 4);
      fromModel.close();
      QTRY_VERIFY_WITH_TIMEOUT(!fromModel.isVisible(), 60'000);
    }
    // And a window that was closed is not asked about; what it had open is one Enter away.
    MainWindow third(true);
    third.show();
    third.offerReturn();
    QVERIFY(!third.notice().isVisible());
    QApplication::setActiveWindow(&third);
    auto* recent = third.findChild<QListWidget*>(QStringLiteral("start_recent"));
    QVERIFY(recent && recent->currentRow() == 0);
    QCOMPARE(recent->count(), 1);  // the model, with what the window recorded of it beside it
    QVERIFY(QFileInfo::exists(third.store().project().files()[0].recording));
    QVERIFY(third.store().project().files()[0].recording.endsWith(QStringLiteral(".stepscope")));
    QCOMPARE(recent->item(0)->data(Qt::UserRole).toString(), bundledModels()[0].model);
    recent->setFocus();
    QTest::keyClick(recent, Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(third.store().model() != nullptr, 60'000);
    qputenv("XDG_DATA_HOME", data);
  }
};

SS_QT_CLASS(QApplication, FilesTest)
#include "tst_files.moc"
