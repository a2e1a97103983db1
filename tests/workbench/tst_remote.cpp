// SPDX-License-Identifier: GPL-3.0-or-later
// A window whose worker runs on another machine. A script stands in for ssh: it runs what it is given in another folder,
// which is the home of that machine, and knows one host.
#include <QComboBox>
#include <QDialog>
#include <QFileDialog>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTest>

#include "app/workbench/actions.h"
#include "app/workbench/model_transfer.h"
#include "app/workbench/notice_bar.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

constexpr int kMs = 60'000;

bool write(const QString& path, const QByteArray& text) {
  QFile file(path);
  return file.open(QIODevice::WriteOnly) && file.write(text) == text.size() &&
         file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
}

int filesBelow(const QString& folder, const QString& pattern) {
  int found = 0;
  for (const QFileInfo& info : QDir(folder).entryInfoList({QStringLiteral("stepscope-states-*")}, QDir::Dirs))
    found += static_cast<int>(QDir(info.filePath()).entryList({pattern}, QDir::Files).size());
  return found;
}

}  // namespace

class RemoteTest : public QObject {
  Q_OBJECT

  QTemporaryDir there_;

  QString ssh() const { return there_.filePath(QStringLiteral("ssh")); }

  // Through the dialog, as a person does.
  static void connectThrough(WindowDriver& w, const QString& host, const QString& program) {
    QVERIFY(w.act("connect"));
    auto* dialog = w->findChild<QDialog*>(QStringLiteral("connect_dialog"));
    QVERIFY(dialog);
    dialog->findChild<QComboBox*>(QStringLiteral("connect_host"))->setEditText(host);
    dialog->findChild<QLineEdit*>(QStringLiteral("connect_program"))->setText(program);
    if (const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES"); !folder.isEmpty())
      dialog->grab().save(folder + QStringLiteral("/connect.png"));
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("connect_go"))->click(); });
  }
  static bool reached(WindowDriver& w, const QString& host) {
    return w.loop().wait([&] {
      return w->session().client().host().host == host && w->store().workerState() == WorkerState::kIdle &&
             !w->session().busy();
    });
  }

 private slots:
  void init() {
    QDir(there_.path()).mkpath(QStringLiteral("models/digits"));
    QDir(there_.path()).mkpath(QStringLiteral("tmp"));
    const TestModel model = bundledModels()[0];
    QFile::copy(model.model, there_.filePath(QStringLiteral("models/digits/model.onnx")));
    QFile::copy(model.data, there_.filePath(QStringLiteral("models/digits/batches.npz")));
    QVERIFY(write(ssh(),
                  "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\n"
                  "[ \"$1\" = far ] || { echo \"ssh: connect to host $1 port 22: No route to host\" >&2; exit 255; }\n"
                  "cd \"$STAND_IN_HOME\" && HOME=\"$PWD\" TMPDIR=\"$PWD/tmp\" exec sh -c \"$2\"\n"));
    qputenv("STEPSCOPE_SSH", ssh().toUtf8());
    qputenv("STAND_IN_HOME", there_.path().toUtf8());
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  void aModelOfTheOtherMachineIsTrained() {
    WindowDriver w;
    connectThrough(w, QStringLiteral("far"), QStringLiteral(REAL_WORKER));
    QVERIFY2(reached(w, QStringLiteral("far")), qPrintable(w->notice().text()));
    // The start page says whose processor and memory these are.
    const auto* machine = w->findChild<QLabel*>(QStringLiteral("start_machine_title"));
    QVERIFY(machine && w.loop().wait([&] { return machine->text().contains(QStringLiteral("far")); }));
    w.picture(QStringLiteral("remote-start"));
    // A relative path, which is none of this machine.
    QVERIFY(!QFileInfo::exists(QStringLiteral("models/digits/model.onnx")));
    QVERIFY(w.act("open"));
    auto* asked = w->findChild<QInputDialog*>(QStringLiteral("open_there_dialog"));
    QVERIFY(asked);
    w.loop().act([asked] {
      asked->setTextValue(QStringLiteral("models/digits/model.onnx"));
      asked->accept();
    });
    QVERIFY(w.loop().wait([&] { return w->findChild<SetUpDialog*>() || w->notice().isProblem(); }));
    QVERIFY2(w->findChild<SetUpDialog*>(), qPrintable(w->notice().text()));
    snapshot::Configure configuration;
    auto& data = *configuration.add_settings();
    data.set_name("data");
    data.set_value("models/digits/batches.npz");
    w.loop().act([&] { w->session().build(configuration); });
    QVERIFY(w.loop().wait([&] { return (w->session().built() && !w->session().busy()) || w->notice().isProblem(); }));
    QVERIFY2(w->session().built(), qPrintable(w->notice().text()));
    QVERIFY2(w->windowTitle().contains(QStringLiteral("far")), qPrintable(w->windowTitle()));
    w.picture(QStringLiteral("remote"));
    // The states of the session lie there.
    w.loop().act([&] { w->session().train(4); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.settled());
    QVERIFY(
        w.loop().wait([&] { return filesBelow(there_.filePath(QStringLiteral("tmp")), QStringLiteral("state-*")) > 0; }));
    const std::int64_t step = w->store().position().step();
    const double loss = w->store().steps().back()->loss();
    // A worker that dies comes back from them.
    w.loop().act([&] { w->session().client().kill(); });
    QVERIFY(w.loop().wait([&] { return w->store().workerState() == WorkerState::kDead; }));
    QVERIFY_DONE(w.act("restart"), w);
    QVERIFY(
        w.loop().wait([&] { return w->session().built() && !w->session().busy() && w->store().position().step() == step; }));
    w.loop().act([&] { w->session().rewind(step - 1); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), step - 1);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.settled());
    QCOMPARE(w->store().steps().back()->loss(), loss);
    // Back on this machine, nothing is open and the folder over there is gone.
    w.loop().act([&] { w->connectTo({}); });
    QVERIFY(reached(w, QString()));
    QVERIFY(!w->session().built());
    QVERIFY(w.loop().wait([&] { return QDir(there_.filePath(QStringLiteral("tmp"))).isEmpty(); }));
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
  }

  void aModelOfThisMachineIsSent() {
    WindowDriver w;
    w.loop().act([&] { w->connectTo({QStringLiteral("far"), QStringLiteral(REAL_WORKER)}); });
    QVERIFY(reached(w, QStringLiteral("far")));
    const RemoteHost host = w->session().client().host();
    ModelTransfer transfer;
    QString path, why;
    connect(&transfer, &ModelTransfer::sent, this, [&path](const QString& to) { path = to; });
    connect(&transfer, &ModelTransfer::failed, this, [&why](const QString& text) { why = text; });
    transfer.send(host, bundledModels()[0].model);
    QVERIFY(w.loop().wait([&] { return !path.isEmpty() || !why.isEmpty(); }));
    QVERIFY2(path.startsWith(there_.path() + QStringLiteral("/.cache/stepscope/models/")), qPrintable(path + why));
    for (const QFileInfo& file : ModelTransfer::filesOf(bundledModels()[0].model)) {
      QFile here(file.filePath()), sent(QFileInfo(path).dir().filePath(file.fileName()));
      QVERIFY(here.open(QIODevice::ReadOnly) && sent.open(QIODevice::ReadOnly));
      QVERIFY(here.readAll() == sent.readAll());
    }
    w.loop().act([&] { w->openPath(path); });
    QVERIFY(w.loop().wait([&] { return w->findChild<SetUpDialog*>() != nullptr; }));
    // One that is not there.
    transfer.send({QStringLiteral("nowhere"), {}}, bundledModels()[0].model);
    QVERIFY(w.loop().wait([&] { return !why.isEmpty(); }));
    QVERIFY2(why.contains(QStringLiteral("No route")) && why.contains(QStringLiteral("expected")), qPrintable(why));
  }

  // Batches of this machine are sent before they can be used there.
  void batchesOfThisMachineAreSent() {
    WindowDriver w;
    w.loop().act([&] { w->connectTo({QStringLiteral("far"), QStringLiteral(REAL_WORKER)}); });
    QVERIFY(reached(w, QStringLiteral("far")));
    w.loop().act([&] { w->openPath(there_.filePath(QStringLiteral("models/digits/model.onnx"))); });
    const auto dialog = [&] { return w->findChild<SetUpDialog*>(); };
    QVERIFY(w.loop().wait([&] { return dialog() != nullptr; }));
    auto* choose = dialog()->findChild<QPushButton*>(QStringLiteral("set_up_choose"));
    QVERIFY(choose->text() == QStringLiteral("Send…") && choose->toolTip().contains(QStringLiteral("far")));
    w.loop().act([&] { choose->click(); });
    auto* files = dialog()->findChild<QFileDialog*>(QStringLiteral("set_up_choose_dialog"));
    QVERIFY(files);
    w.picture(QStringLiteral("remote-set-up"));
    w.loop().act([&] {
      emit files->fileSelected(bundledModels()[0].data);
      files->close();
    });
    const auto* field = dialog()->findChild<QLineEdit*>(QStringLiteral("set_up_data"));
    const QString there = there_.path() + QStringLiteral("/.cache/stepscope/models/");
    QVERIFY2(w.loop().wait([&] { return field->text().startsWith(there); }), qPrintable(field->text()));
    QFile here(bundledModels()[0].data), sent(field->text());
    QVERIFY(here.open(QIODevice::ReadOnly) && sent.open(QIODevice::ReadOnly));
    QVERIFY(here.readAll() == sent.readAll());
    w.loop().act([&] { dialog()->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return (w->session().built() && !w->session().busy()) || w->notice().isProblem(); }));
    QVERIFY2(w->session().built(), qPrintable(w->notice().text()));
  }

  void whatKeepsAWorkerFromComingIsSaid_data() {
    QTest::addColumn<QString>("host");
    QTest::addColumn<QString>("program");
    QTest::addColumn<QStringList>("said");
    const QString other = there_.filePath(QStringLiteral("other_version"));
    QTest::newRow("not reached") << QStringLiteral("nowhere") << QString()
                                 << QStringList{QStringLiteral("host 'nowhere': not reached"),
                                                QStringLiteral("No route to host"), QStringLiteral("expected")};
    QTest::newRow("no program") << QStringLiteral("far") << QStringLiteral("/no/such/stepscope")
                                << QStringList{QStringLiteral("program '/no/such/stepscope': not there on 'far'"),
                                               QStringLiteral("hint")};
    QTest::newRow("no worker") << QStringLiteral("far") << QStringLiteral("false")
                               << QStringList{QStringLiteral("ended with exit code 1"), QStringLiteral("expected a worker")};
    QTest::newRow("another version") << QStringLiteral("far") << other
                                     << QStringList{QStringLiteral("is of version 9.9.9"), QStringLiteral("expected")};
  }
  void whatKeepsAWorkerFromComingIsSaid() {
    QFETCH(QString, host);
    QFETCH(QString, program);
    QFETCH(QStringList, said);
    QVERIFY(write(there_.filePath(QStringLiteral("other_version")),
                  QByteArray("#!/bin/sh\nFAKE_VERSION=9.9.9 exec " FAKE_WORKER "\n")));
    WindowDriver w;
    connectThrough(w, host, program);
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }, kMs));
    for (const QString& part : said) QVERIFY2(w->notice().text().contains(part), qPrintable(w->notice().text()));
    w.picture(QStringLiteral("remote_") + QString::fromLatin1(QTest::currentDataTag()).replace(' ', '_'));
    w.loop().act([&] { w->connectTo({}); });
    QVERIFY(reached(w, QString()));
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
  }

  // No name of a host becomes an option or a second command.
  void aHostThatIsNoNameIsRefused() {
    for (const char* name : {"", "-oProxyCommand=touch owned", "far away", "far'"}) {
      const RemoteHost host{QString::fromLatin1(name), {}};
      QVERIFY2(problemOf(host).contains(QStringLiteral("expected")), name);
    }
    QVERIFY(problemOf({QStringLiteral("me@far"), {}}).isEmpty());
    const HostCommand command = workerCommand({QStringLiteral("far"), QStringLiteral("/a b/it's; touch owned")});
    QCOMPARE(command.arguments.last(), QStringLiteral("exec '/a b/it'\\''s; touch owned' 'worker'"));
    QCOMPARE(command.arguments[command.arguments.size() - 3], QStringLiteral("--"));
  }
};

SS_QT_CLASS(QApplication, RemoteTest)
#include "tst_remote.moc"
