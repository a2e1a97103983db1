// SPDX-License-Identifier: GPL-3.0-or-later
// Views in windows of their own, and windows that fit the screens there are.
#include <QApplication>
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QScreen>
#include <QSettings>
#include <QTabBar>
#include <QTest>

#include "app/workbench/actions.h"
#include "app/workbench/panel_board.h"
#include "app/workbench/screen_fit.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"

using namespace stepscope;

namespace {

QWidget* windowOf(MainWindow& window, const char* view) {
  return window.findChild<QWidget*>(QLatin1String(view) + QStringLiteral("_window"));
}

bool isInArea(MainWindow& window, const QString& id) {
  const ViewLayout layout = window.board().present(QStringLiteral("now"));
  return std::any_of(layout.views.begin(), layout.views.end(), [&id](const QStringList& ids) { return ids.contains(id); });
}

}  // namespace

class FloatingTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void aWindowFitsAScreenThatExists() {
    const QList<QRect> screens{{0, 0, 1280, 800}, {1280, 0, 1920, 1080}};
    // Where it was, when that is there.
    QCOMPARE(fitToScreens({1400, 100, 800, 600}, screens), QRect(1400, 100, 800, 600));
    // Its screen is gone, or smaller than it.
    QCOMPARE(fitToScreens({1400, 100, 800, 600}, screens.mid(0, 1)), QRect(480, 100, 800, 600));
    QCOMPARE(fitToScreens({-5000, -5000, 3000, 2000}, screens.mid(0, 1)), QRect(0, 0, 1280, 800));
    // Between two screens: the one that shows most of it.
    QCOMPARE(fitToScreens({1000, 300, 700, 400}, screens), QRect(1280, 300, 700, 400));
    QCOMPARE(fitToScreens({10, 10, 5, 5}, {}), QRect(10, 10, 5, 5));
  }

  // Torn out, it goes on showing what is selected; closed, it is back in its place.
  void aViewIsTornOutAndComesBack() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    View* instructions = w.view(QStringLiteral("instructions"));
    const ViewLayout before = w->board().present(QString());
    w.loop().act([&] { w->board().tearOut(QStringLiteral("instructions")); });
    QVERIFY(w.loop().wait([&] { return windowOf(*w, "instructions") && windowOf(*w, "instructions")->isVisible(); }));
    QWidget* window = windowOf(*w, "instructions");
    QVERIFY(window->isWindow() && instructions->window() == window);
    QCOMPARE(w->board().find(QStringLiteral("instructions")), instructions);
    QVERIFY(!isInArea(*w, QStringLiteral("instructions")));
    QVERIFY(window->screen()->availableGeometry().contains(window->geometry()));
    QVERIFY(window->windowTitle().contains(QStringLiteral("Instructions")));
    if (const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES"); !folder.isEmpty())
      window->grab().save(folder + QStringLiteral("/floating.png"));
    w.picture(QStringLiteral("floating-main"));
    // The keys of the window are its keys.
    QVERIFY(window->actions().contains(w->actions()[QStringLiteral("step")]));
    const int at = w.instruction();
    w.loop().act([&] { QTest::keyClick(instructions, Qt::Key_F10); });
    QVERIFY(w.loop().wait([&] { return w.instruction() != at && !w->session().busy(); }));
    // Shown again by name it is that window, and not a second view.
    w.loop().act([&] { w->board().show(QStringLiteral("instructions")); });
    QVERIFY(!isInArea(*w, QStringLiteral("instructions")));
    w.loop().act([&] { window->close(); });
    QVERIFY(w.loop().wait([&] { return !windowOf(*w, "instructions") && isInArea(*w, QStringLiteral("instructions")); }));
    QCOMPARE(w->board().find(QStringLiteral("instructions")), instructions);
    QVERIFY(instructions->window() == &*w);
    QVERIFY(w->board().present(QString()).floating.empty());
    QCOMPARE(w->board().present(QString()).views[0].size(), before.views[0].size());
    // Undo takes back the return, and the tearing out.
    QVERIFY(w.act("undo"));
    QVERIFY(w.loop().wait([&] { return windowOf(*w, "instructions") != nullptr; }));
    QVERIFY(w.act("undo"));
    QVERIFY(w.loop().wait([&] { return !windowOf(*w, "instructions"); }));
    QVERIFY(isInArea(*w, QStringLiteral("instructions")));
  }

  // Another layout takes it back; the start page hides it with everything else.
  void itBelongsToTheLayoutAndTheBoard() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->board().tearOut(QStringLiteral("memory")); });
    QVERIFY(w.loop().wait([&] { return windowOf(*w, "memory") && windowOf(*w, "memory")->isVisible(); }));
    QVERIFY(w.act("start_page"));
    QVERIFY(w.loop().wait([&] { return !windowOf(*w, "memory")->isVisible(); }));
    QVERIFY(w.act("start_page"));
    QVERIFY(w.loop().wait([&] { return windowOf(*w, "memory")->isVisible(); }));
    w.loop().act([&] { w->applyLayout(QStringLiteral("Explore")); });
    QVERIFY(w.loop().wait([&] { return !windowOf(*w, "memory"); }));
  }

  // A click on a tab makes its view the current one, with the keyboard; commands are for it.
  void aClickOnATabMakesItsViewCurrent() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QApplication::setActiveWindow(&*w);
    View* graph = w.view(QStringLiteral("graph"));
    w.view(QStringLiteral("timeline"));
    w.loop().act([&] { w->board().focus(*graph); });
    QCOMPARE(w->board().activeView(), graph);
    for (auto* tabs : w->findChildren<QTabBar*>())
      for (int i = 0; i < tabs->count(); ++i)
        if (tabs->tabData(i).toString() == QStringLiteral("timeline") && tabs->isTabVisible(i))
          w.loop().act([&] { QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(i).center()); });
    QVERIFY(w.settled());
    const View* timeline = w->board().find(QStringLiteral("timeline"));
    QCOMPARE(w->board().activeView(), timeline);
    const QWidget* focus = QApplication::focusWidget();
    QVERIFY(focus && timeline->parentWidget()->parentWidget()->parentWidget()->isAncestorOf(focus));
    QVERIFY(w.act("tear_out"));
    QVERIFY(w.loop().wait([&] { return windowOf(*w, "timeline") != nullptr; }));
    QVERIFY(!windowOf(*w, "graph"));
  }

  // What was left floating floats again, on a screen that is there.
  void itIsRememberedWithTheLayout() {
    ViewLayout layout;
    layout.name = QStringLiteral("Mine");
    layout.views[1] = {QStringLiteral("graph")};
    layout.floating = {{QStringLiteral("tensors"), Area::kRight, QRect(9000, 9000, 700, 500)}};
    const QJsonObject json = QJsonDocument::fromJson(QJsonDocument(layout.toJson()).toJson()).object();
    QCOMPARE(ViewLayout::fromJson(json), layout);
    // One that stands in two places stands in the first; a place that is none is brought into range.
    QJsonObject odd = json;
    odd["windows"] =
        QJsonDocument::fromJson(R"([{"view":"graph"},{"view":"node","home":"nowhere","place":[1e30,"x"]},{"view":7},5])")
            .array();
    const ViewLayout read = ViewLayout::fromJson(odd);
    QCOMPARE(read.floating.size(), std::size_t{1});
    QCOMPARE(read.floating[0].id, QStringLiteral("node"));
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    for (const ViewLayout& each : {layout, read}) {
      w.loop().act([&] { w->board().apply(each); });
      const QByteArray id = each.floating[0].id.toUtf8();
      QVERIFY(w.loop().wait([&] { return windowOf(*w, id.constData()) && windowOf(*w, id.constData())->isVisible(); }));
      const QRect place = windowOf(*w, id.constData())->geometry();
      QVERIFY2(windowOf(*w, id.constData())->screen()->availableGeometry().contains(place),
               qPrintable(QStringLiteral("%1 %2").arg(place.x()).arg(place.y())));
    }
  }
};

SS_QT_CLASS(QApplication, FloatingTest)
#include "tst_floating.moc"
