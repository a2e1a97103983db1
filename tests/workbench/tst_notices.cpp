// SPDX-License-Identifier: GPL-3.0-or-later
// What stands above the views for as long as it holds: a disk that is full, data that nobody chose. And a file of the start
// page that is gone.
#include <sys/resource.h>

#include <QListWidget>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>

#include "storage/queries.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

class NoticesTest : public QObject {
  Q_OBJECT

  // No file of this process becomes longer than `bytes`, as on a disk without room.
  class FullDisk {
   public:
    explicit FullDisk(qint64 bytes) {
      std::signal(SIGXFSZ, SIG_IGN);
      getrlimit(RLIMIT_FSIZE, &before_);
      const struct rlimit full {
        static_cast<rlim_t>(bytes), before_.rlim_max
      };
      setrlimit(RLIMIT_FSIZE, &full);
    }
    ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

   private:
    struct rlimit before_ {};
  };

  static QPushButton* action(WindowDriver& w) {
    return w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
  }

  static QPushButton* cross(WindowDriver& w) {
    for (auto* button : w->notice().findChildren<QPushButton*>())
      if (button->accessibleName() == u"Close this message") return button;
    return nullptr;
  }

  const QString recording_ = QStringLiteral("recording"), madeUp_ = QStringLiteral("made_up_data");

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // Above the views, until it is recorded again: what is lost, that it is tried again, what one can do. Another message
  // covers it for its own time; who closed it is not told again of the same.
  void aFullDiskIsSaidUntilItIsRecordedAgain() {
    const QTemporaryDir folder;
    const QString project = folder.filePath(QStringLiteral("full.stepscope"));
    WindowDriver w;
    w->setProjectPath(project);
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    for (int i = 0; i < 2; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    QVERIFY(!w->notice().isVisible());
    {
      const FullDisk full(65536);
      for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step_whole"), w);
      QVERIFY2(w.loop().wait([&] { return w->notice().stands(recording_); }, 20'000), qPrintable(w->notice().text()));
      for (const char* part :
           {"Nothing can be recorded now", "The training goes on", "tried again", "make room on its disk"})
        QVERIFY2(w->notice().text().contains(QLatin1String(part)), qPrintable(w->notice().text()));
      QVERIFY(w->notice().text().contains(project) && !w->notice().isProblem());
      w.loop().act([&] { w->notice().showProblem(QStringLiteral("something else"), {}, {}); });
      QCOMPARE(w->notice().text(), QStringLiteral("something else"));
      w.loop().act([&] { cross(w)->click(); });
      QVERIFY(w->notice().isVisible() && w->notice().stands(recording_));
      QVERIFY_DONE(w.act("step_whole"), w);
      QVERIFY(w->notice().stands(recording_));
      w.loop().act([&] { cross(w)->click(); });
      QVERIFY(!w->notice().isVisible());
      QTest::qWait(2'500);  // it is told every second
      QVERIFY(!w->notice().isVisible());
    }
    const auto kept = [&] {
      w.loop().act([&] { w->recording().queries().refreshRuns(); });
      return w.recorded() && !w->store().project().runs().empty() && w->store().project().runs().back().steps == 6;
    };
    QTRY_VERIFY_WITH_TIMEOUT(kept(), 30'000);
    QVERIFY(!w->notice().isVisible());
  }

  void theNoticeOfAFullDiskGoesByItself() {
    const QTemporaryDir folder;
    WindowDriver w;
    w->setProjectPath(folder.filePath(QStringLiteral("full.stepscope")));
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY(w.recorded());
    {
      const FullDisk full(65536);
      QVERIFY_DONE(w.act("step_whole"), w);
      QVERIFY2(w.loop().wait([&] { return w->notice().stands(recording_); }, 20'000), qPrintable(w->notice().text()));
    }
    w.picture(QStringLiteral("disk-full"));  // which could not be written before
    QVERIFY(w.loop().wait([&] { return !w->notice().isVisible(); }, 30'000));
  }

  // Built from a command line without data: made up, which is said, with the way to others; chosen data are not.
  void dataThatNobodyChoseAreSaid() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt({{}, bundledModels()[0].model, {}}, {{"lr", "0.1"}}), w);
    QVERIFY(w->notice().stands(madeUp_));
    for (const char* part : {"No data was chosen", "made up", "batches.npz beside the model would fit"})
      QVERIFY2(w->notice().text().contains(QLatin1String(part)), qPrintable(w->notice().text()));
    QCOMPARE(action(w)->text(), QStringLiteral("Change set-up…"));
    w.picture(QStringLiteral("made-up-data"));
    for (int i = 0; i < 2; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(w->notice().stands(madeUp_), "a step ends no message that holds");
    w.loop().act([&] { action(w)->click(); });
    SetUpDialog* dialog = nullptr;
    QVERIFY(w.loop().wait([&] { return (dialog = w->findChild<SetUpDialog*>()) && dialog->isVisible(); }));
    QVERIFY(!w->notice().isVisible());
    w.loop().act([&] {
      dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->setText(bundledModels()[0].data);
      dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click();
    });
    QVERIFY(w.settled());
    QVERIFY(!w->notice().isVisible());
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"lr", "0.1"}}), w);
    QVERIFY(!w->notice().isVisible());
  }

  // Nor does the set-up, where made-up data are one of the choices.
  void madeUpDataOfTheSetUpAreChosen() {
    WindowDriver w;
    QVERIFY_DONE(w.build({{}, bundledModels()[0].model, {}}), w);
    QVERIFY2(!w->notice().isVisible(), qPrintable(w->notice().text()));
  }

  // A project of the start page that is gone: what is missing is said, the page stays, and the entry can be removed.
  void aFileOfTheListThatIsGoneIsSaid() {
    const QTemporaryDir home;
    const QByteArray data = qgetenv("XDG_DATA_HOME");
    qputenv("XDG_DATA_HOME", home.path().toUtf8());
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, home.path());
    const QString gone = home.filePath(QStringLiteral("gone.stepscope")),
                  other = home.filePath(QStringLiteral("other.onnx"));
    for (const QString& path : {gone, other}) {
      QFile file(path);
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write("x") == 1);
    }
    QSettings().setValue(QStringLiteral("recent"), QStringList{gone, other});
    MainWindow window(true);
    window.resize(1280, 800);
    window.show();
    auto* recent = window.findChild<QListWidget*>(QStringLiteral("start_recent"));
    QCOMPARE(recent->count(), 2);
    QVERIFY(QFile::remove(gone));
    QTest::mouseClick(recent->viewport(), Qt::LeftButton, {}, recent->visualItemRect(recent->item(0)).center());
    QTRY_VERIFY_WITH_TIMEOUT(window.notice().isProblem(), 10'000);
    QVERIFY2(window.notice().text().contains(gone) && window.notice().text().contains(QStringLiteral("no such file")),
             qPrintable(window.notice().text()));
    QTest::qWait(500);
    QVERIFY(recent->isVisible() && !window.board().isVisible());
    auto* button = window.notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QCOMPARE(button->text(), QStringLiteral("Remove from the list"));
    button->click();
    QVERIFY(!window.notice().isVisible());
    QCOMPARE(recent->count(), 1);
    QCOMPARE(QSettings().value(QStringLiteral("recent")).toStringList(), QStringList{other});
    // A file that is not in the list is only missing.
    window.openPath(gone);
    QTRY_VERIFY_WITH_TIMEOUT(window.notice().isProblem(), 10'000);
    QVERIFY(button->isHidden());
    qputenv("XDG_DATA_HOME", data);
  }
};

SS_QT_CLASS(QApplication, NoticesTest)
#include "tst_notices.moc"
