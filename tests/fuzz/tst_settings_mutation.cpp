// SPDX-License-Identifier: GPL-3.0-or-later
// Damaged settings of the window: its file, the layouts and recent files in it, and the places that killed windows left.
//
// Whatever is there, a window opens with views in it, writes a sound file when it closes, and the log says what was left
// out.
#include <QCryptographicHash>
#include <QDir>
#include <QJsonDocument>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include "app/workbench/main_window.h"
#include "tests/fuzz/damages.h"
#include "tests/support/qt_classes.h"
#include "views/common/tokens.h"

using namespace stepscope;

namespace {

QString logOf(MainWindow& window) {
  QStringList lines;
  for (const LogLine& line : window.store().log())
    if (line.level == u"warning") lines << line.text;
  return lines.join('\n');
}

// Every view belongs to an area, and one of them can be seen.
bool stands(MainWindow& window) { return window.board().activeView() != nullptr && !window.layoutNames().isEmpty(); }

}  // namespace

class SettingsMutationTest : public QObject {
  Q_OBJECT

  QTemporaryDir home_;
  QByteArray whole_;
  int used_ = 0;

  // A file of its own for each: QSettings keeps in memory what it has read of one.
  QString freshFile() {
    const QString folder = home_.filePath(QStringLiteral("settings-%1").arg(++used_));
    QDir().mkpath(folder);
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, folder);
    const QString file = QSettings().fileName();
    QDir().mkpath(QFileInfo(file).path());
    return file;
  }

  void useSettings(const QByteArray& bytes) {
    QFile file(freshFile());
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size());
  }

  // Settings with one value that is not what it should be.
  void useValue(const QString& key, const QVariant& value) {
    useSettings(whole_);
    QSettings().setValue(key, value);
  }

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    qputenv("XDG_DATA_HOME", QFile::encodeName(home_.path()));
    QCoreApplication::setOrganizationName(QStringLiteral("stepscope"));
    QCoreApplication::setApplicationName(QStringLiteral("settings-mutation"));
    const QString file = freshFile();
    {
      MainWindow window(true);
      window.show();
      window.applyLayout(QStringLiteral("Compare"));
      QTRY_VERIFY_WITH_TIMEOUT(stands(window), 60'000);
      window.close();
    }
    {
      QSettings settings;
      settings.setValue(QStringLiteral("recent"),
                        QStringList{QStringLiteral("/models/a,b.onnx"), QStringLiteral("/c.stepscope")});
      const QByteArray layout = settings.value(QStringLiteral("present")).toByteArray();
      QVERIFY(layout.contains("Compare"));
      settings.setValue(QStringLiteral("layouts"), QByteArray("[" + layout + "]"));
    }
    QFile written(file);
    QVERIFY(written.open(QIODevice::ReadOnly));
    whole_ = written.readAll();
    QVERIFY(whole_.size() > 1000);
  }

  void soundSettingsAreNotComplainedOf() {
    useSettings(whole_);
    MainWindow window(true);
    QVERIFY(stands(window));
    QCOMPARE(logOf(window), QString());
    QVERIFY(window.layoutNames().contains(QStringLiteral("Compare")));
  }

  void aValueThatIsNoneLeavesTheDefaultAndAWord_data() {
    QTest::addColumn<QString>("key");
    QTest::addColumn<QVariant>("value");
    QTest::addColumn<QString>("word");
    const auto row = [](const char* name, const char* key, const QVariant& value, const char* word) {
      QTest::newRow(name) << QString::fromLatin1(key) << value << QString::fromLatin1(word);
    };
    row("a layout that is cut", "present", QByteArray("{\"name\":\"Compare\",\"areas\":{\"left\""), "at byte");
    row("a layout that is a list", "present", QByteArray("[1,2]"), "a name and views");
    row("a layout without views", "present", QByteArray("{\"name\":\"x\"}"), "a layout 'x' without a view");
    row("a layout of views that there are not", "present",
        QByteArray("{\"name\":\"x\",\"areas\":{\"left\":{\"views\":[\"nothing\",7,null]}}}"), "a layout 'x' without a view");
    row("a layout of another type", "present", QVariant(QStringList{QStringLiteral("a"), QStringLiteral("b")}),
        "QStringList");
    row("layouts that are none", "layouts", QByteArray("[7,null,{\"name\":\"\"}]"), "a name and views");
    row("a geometry of text", "geometry", QByteArray("large"), "5 bytes");
    row("a geometry of a list", "geometry", QVariant(QStringList{QStringLiteral("a"), QStringLiteral("b")}), "QStringList");
    row("recent files of bytes", "recent", QByteArray("\x01\x02"), "a list of texts");
    row("a state that is no JSON", "view/graph", QStringLiteral("{\"heat\":"), "the state of the view");
    row("a page that there is not", "view/compare", QStringLiteral("compare_times"), "the state of the view");
    row("a state that is no page", "view/compare", QStringLiteral("77"), "the state of the view");
  }
  void aValueThatIsNoneLeavesTheDefaultAndAWord() {
    QFETCH(QString, key);
    QFETCH(QVariant, value);
    QFETCH(QString, word);
    useValue(key, value);
    {
      MainWindow window(true);
      window.show();
      window.applyLayout(QStringLiteral("Compare"));  // the views whose states are damaged
      QTRY_VERIFY_WITH_TIMEOUT(stands(window), 60'000);
      QTRY_VERIFY2_WITH_TIMEOUT(logOf(window).contains("settings '" + key + '\'') && logOf(window).contains(word),
                                qPrintable(logOf(window)), 60'000);
      QCOMPARE(logOf(window).count("settings '" + key + '\''), 1);
      window.close();
    }
    // What is written at the end is sound. The list of recent files is written when a file is opened.
    if (key == u"recent") return;
    MainWindow next(true);
    QVERIFY(stands(next));
    QCOMPARE(logOf(next), QString());
  }

  void aDamagedFileNeverHarms() {
    int told = 0;
    constexpr int kFiles = 60;
    for (int seed = 0; seed < kFiles; ++seed) {
      const std::string bytes = testing::damaged(whole_.toStdString(), static_cast<std::uint64_t>(seed));
      useSettings(QByteArray::fromStdString(bytes));
      {
        MainWindow window(true);
        window.show();
        QCoreApplication::processEvents();
        QVERIFY2(stands(window), qPrintable(QString::number(seed)));
        told += logOf(window).isEmpty() ? 0 : 1;
        window.close();
      }
      MainWindow next(true);
      QVERIFY2(stands(next), qPrintable(QString::number(seed)));
    }
    QVERIFY2(told > kFiles / 10, qPrintable(QString::number(told)));
  }

  // The settings that a model was built with last stand in its set-up.
  void aDamagedSetUpNeverHarms() {
    snapshot::Configure configuration;
    for (const auto& [name, value] : {std::pair("data", "/data/x.npz"), std::pair("lr", "0.1"), std::pair("set", "a=b")}) {
      configuration.add_settings()->set_name(name);
      configuration.mutable_settings()->rbegin()->set_value(value);
    }
    const std::string whole = configuration.SerializeAsString();
    const QString model = QStringLiteral("/nowhere/made_up.onnx");
    const QString key =
        "set_up/" + QString::fromLatin1(QCryptographicHash::hash(model.toUtf8(), QCryptographicHash::Sha1).toHex());
    int told = 0;
    for (int seed = 0; seed < 20; ++seed) {
      useValue(key, QByteArray::fromStdString(testing::damaged(whole, static_cast<std::uint64_t>(seed))));
      MainWindow window(true);
      window.show();
      window.session().inspect(model, {});
      QTRY_VERIFY_WITH_TIMEOUT(window.findChild<QWidget*>(QStringLiteral("set_up")), 60'000);
      told += logOf(window).contains(key) ? 1 : 0;
    }
    QVERIFY2(told > 0, qPrintable(QString::number(told)));
  }

  void aDamagedPlaceNeverHarms() {
    const QString folder = home_.filePath(QStringLiteral("places"));
    SessionPlace place;
    place.path = QStringLiteral("/models/a.onnx");
    place.configuration = QByteArray("\x01\x00\xff", 3);
    place.step = 7;
    place.layout = QJsonDocument(shippedLayouts()[0].toJson()).toJson(QJsonDocument::Compact);
    SessionMark window(folder), next(folder);
    window.keep(place);
    QFile kept(folder + '/' + QDir(folder).entryList({QStringLiteral("*.json")})[0]);
    QVERIFY(kept.open(QIODevice::ReadOnly));
    const std::string whole = kept.readAll().toStdString();
    int refused = 0, taken = 0;
    for (int seed = 0; seed < 1000; ++seed) {
      const std::string bytes = testing::damaged(whole, static_cast<std::uint64_t>(seed));
      QFile file(folder + QStringLiteral("/killed.json"));
      QVERIFY(file.open(QIODevice::WriteOnly) && file.write(bytes.data(), static_cast<qint64>(bytes.size())) >= 0);
      file.close();
      QString problem;
      const auto lost = next.takeLost(&problem);
      QVERIFY2(lost.has_value() != !problem.isEmpty(), qPrintable(problem));
      if (lost) {
        QVERIFY(!lost->path.isEmpty() && lost->step >= 0);
        const ViewLayout layout = ViewLayout::fromJson(QJsonDocument::fromJson(lost->layout).object());
        QVERIFY(layout.left >= 0.05 && layout.left <= 0.8);
      }
      ++(lost ? taken : refused);
      QVERIFY(!file.exists());
    }
    QVERIFY2(refused > 100 && taken > 100, qPrintable(QStringLiteral("%1 and %2").arg(refused).arg(taken)));
  }
};

SS_QT_CLASS(QApplication, SettingsMutationTest)
#include "tst_settings_mutation.moc"
