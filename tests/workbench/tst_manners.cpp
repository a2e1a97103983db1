// SPDX-License-Identifier: GPL-3.0-or-later
// What somebody notices who sees the window for the first time: it fits the screen, stays calm while steps follow each
// other, gives the keyboard back, says why a place is empty and refuses what a tensor cannot hold.
#include <qcustomplot.h>

#include <QAbstractItemView>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QRegularExpression>
#include <QScreen>
#include <QSettings>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <QToolButton>
#include <QTreeWidget>
#include <algorithm>
#include <limits>
#include <set>

#include "app/workbench/panel_group.h"
#include "app/workbench/panel_tabs.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/graph_values.h"
#include "tests/workbench/window_driver.h"
#include "views/common/running.h"
#include "views/common/tokens.h"
#include "views/drawing/plot_style.h"
#include "views/graph/graph_canvas.h"
#include "views/tensors/value_facts.h"

using namespace stepscope;

namespace {

// Points of the row's background that have this colour, of those that do not lie under text.
int coloured(const QImage& image, const QRect& row, const QColor& colour) {
  int found = 0;
  for (int x = row.left(); x <= row.right(); ++x) found += image.pixelColor(x, row.top() + 2) == colour;
  return found;
}

// As far as smoothing leaves it.
bool near(const QColor& a, const QColor& b) {
  return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue()) < 150;
}

}  // namespace

class MannersTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  void theFirstWindowFitsTheScreen() {
    QTemporaryDir settings;
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
    MainWindow window(true);
    const QSize room = window.screen()->availableSize();
    const int title = Metrics::current().unit;  // at least, of the frame around it
    QVERIFY2(window.width() <= room.width() && window.height() + title <= room.height(),
             qPrintable(QStringLiteral("%1×%2").arg(window.width()).arg(window.height())));
  }

  // However many files were opened: their list scrolls, and no later page makes the window higher than the screen.
  void manyRecentFilesFitTheScreen() {
    WindowDriver w({1280, 800});
    std::vector<FileEntry> files = w->store().project().files();
    for (int i = 0; i < 12; ++i) files.push_back({QStringLiteral("/models/%1/model.onnx").arg(i), {}, false});
    w.loop().act([&] { w->store().project().setFiles(files); });
    QVERIFY2(w->minimumSizeHint().height() <= 640, qPrintable(QString::number(w->minimumSizeHint().height())));
    const auto* recent = w->findChild<QListWidget*>(QStringLiteral("start_recent"));
    QVERIFY2(w.loop().wait([&] { return recent->height() > 4 * recent->sizeHintForRow(0); }),
             qPrintable(QString::number(recent->height())));
    QCOMPARE(w->size(), QSize(1280, 800));
  }

  // A model stands once; what was recorded of it is opened from its own line.
  void aRecentModelLeadsToItsRuns() {
    WindowDriver w({1280, 800});
    const QString model = QStringLiteral("/nowhere/model.onnx"), runs = QStringLiteral("/nowhere/model-1234.stepscope");
    w.loop().act([&] { w->store().project().setFiles({{model, {}, false, runs}, {model + '2', {}, false}}); });
    auto* recent = w->findChild<QListWidget*>(QStringLiteral("start_recent"));
    QSignalSpy opened(&w->wishes(), &Wishes::openPath);
    w.picture(QStringLiteral("recent-runs"));
    const QRect row = recent->visualItemRect(recent->item(0));
    const auto clicked = [&](const QPoint& at) {
      w.loop().act([&] { QTest::mouseClick(recent->viewport(), Qt::LeftButton, {}, at); });
      return opened.isEmpty() ? QString() : opened.takeLast()[0].toString();
    };
    QCOMPARE(clicked(row.center()), model);
    QVERIFY_DONE(w.act("start_page"), w);
    QCOMPARE(clicked({row.right() - 12, row.center().y()}), runs);
    QVERIFY_DONE(w.act("start_page"), w);
    QCOMPARE(clicked({row.right() - 12, recent->visualItemRect(recent->item(1)).center().y()}), model + '2');
  }

  // With the keyboard alone: after a build it is in the list of instructions, where a breakpoint is two keys away; in the
  // graph the first arrow selects a node, and a frame says that the keyboard is there.
  void theKeyboardAloneSetsABreakpoint() {
    WindowDriver w({1600, 1000});
    w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    auto* list = w->board().find(QStringLiteral("instructions"))->findChild<QAbstractItemView*>();
    const auto focus = [] { return QApplication::focusWidget(); };
    QVERIFY2(w.loop().wait([&] { return list->hasFocus(); }),
             qPrintable(focus() ? QLatin1String(focus()->metaObject()->className()) : QLatin1String("nobody")));
    const auto press = [&](Qt::Key key, Qt::KeyboardModifiers with = {}) {
      w.loop().act([&] { QTest::keyClick(focus(), key, with); });
      return w.settled();
    };
    const auto breaks = [&] {
      return std::ranges::count_if(w->store().breakpoints(), [](const snapshot::Breakpoint& b) {
        return b.condition_case() == snapshot::Breakpoint::kInstruction;
      });
    };
    QVERIFY(press(Qt::Key_Down) && w->selection().selection().instruction >= 0);
    QVERIFY(press(Qt::Key_F9));
    QCOMPARE(breaks(), 1);
    QVERIFY(press(Qt::Key_F9));
    w.loop().act([&] { w->selection().clear(); });

    auto* canvas = w->findChild<GraphCanvas*>();
    w.loop().act([&] { canvas->setFocus(Qt::TabFocusReason); });
    const auto framed = [&] {
      const QImage image = canvas->grab().toImage();
      return near(image.pixelColor(image.width() / 2, 0), Tokens::current().accent) &&
             near(image.pixelColor(0, image.height() / 2), Tokens::current().accent);
    };
    QVERIFY(framed());
    w.picture(QStringLiteral("graph-keyboard"));
    QVERIFY(press(Qt::Key_Down));
    const int first = w->selection().selection().instruction;
    QCOMPARE(first, 0);
    QVERIFY(press(Qt::Key_F9));
    QCOMPARE(breaks(), 1);
    QVERIFY(press(Qt::Key_Down) && w->selection().selection().instruction > 0);
    // From the graph it is not far to the list.
    int tabs = 0;
    while (!list->hasFocus() && tabs < 20) {
      w.loop().act([&] { QTest::keyClick(focus(), Qt::Key_Backtab, Qt::ShiftModifier); });
      ++tabs;
    }
    QVERIFY2(tabs <= 4, qPrintable(QString::number(tabs)));
    // Who clicked knows where the keyboard is.
    w.loop().act([&] { QTest::mouseClick(canvas, Qt::LeftButton, {}, {5, canvas->height() - 5}); });
    QVERIFY(canvas->hasFocus() && !framed());
  }

  // A value that was set by hand says so at its tensor until a step has computed it anew, and where nothing is wrong the
  // notes are counted.
  void anEditIsMarkedAtItsTensor() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const int weight = valueOf(w, [](const auto& v) { return v.name() == "head.weight"; });
    QVERIFY(w.select(Selection::ofValue(weight)));
    const auto* facts = w.view(QStringLiteral("tensors"))->findChild<ValueFacts*>();
    const auto says = [&](const char* text) {
      return w.loop().wait([&] { return facts->toPlainText().contains(QLatin1String(text)); }, 5'000);
    };
    auto* alerts = [&]() -> QAbstractButton* {
      for (auto* button : w->findChildren<QAbstractButton*>())
        if (button->accessibleName() == u"Alerts") return button;
      return nullptr;
    }();
    QVERIFY(alerts && says("of step 0") && !facts->toPlainText().contains(QStringLiteral("edited")));
    w.loop().act([&] { emit w->wishes().editElement(weight, {0, 0}, 2.5, 0); });
    QVERIFY(w.settled());
    QVERIFY2(says("of step 0, edited by hand"), qPrintable(facts->toPlainText()));
    w.picture(QStringLiteral("edited-between"));
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.select(Selection::ofValue(weight)));
    QVERIFY(says("edited by hand"));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(says("of step 1"), qPrintable(facts->toPlainText()));
    QVERIFY2(!facts->toPlainText().contains(QStringLiteral("edited")), qPrintable(facts->toPlainText()));
    QVERIFY2(w.loop().wait([&] { return alerts->isVisible(); }, 5'000) && alerts->text() == u"1 note",
             qPrintable(QStringLiteral("%1 %2").arg(w->store().alerts().size()).arg(alerts->text())));
    w.picture(QStringLiteral("edited-after"));
    w.loop().act([&] { w->session().rewind(1); });
    QVERIFY(w.settled() && w.loop().wait([&] { return w->store().position().step() == 1; }));
    QVERIFY(w.loop().wait([&] { return !alerts->isVisible(); }, 5'000));  // the step is taken back
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.loop().wait([&] { return alerts->isVisible(); }, 5'000));  // how it begins is not
    // In a step, and taken back.
    QVERIFY_DONE(w.act("step"), w);
    const int made = w->store().plan()->instruction(0)->outputs(0).value();
    QVERIFY(w.select(Selection::ofValue(made)));
    w.loop().act([&] { emit w->wishes().editElement(made, {0, 0, 0, 0}, 7, 0); });
    QVERIFY(w.settled());
    QVERIFY2(says("of step 2, edited by hand"), qPrintable(facts->toPlainText()));
    QVERIFY_DONE(w.act("undo"), w);
    QVERIFY(w.loop().wait([&] { return !facts->toPlainText().contains(QStringLiteral("edited")); }, 5'000));
  }

  void theStartPageSaysWhatWillStandThere() {
    WindowDriver w;
    auto* none = w->findChild<QLabel*>(QStringLiteral("start_no_recent"));
    QVERIFY(none);
    w->store().project().setFiles({});
    QVERIFY(none->isVisible());
    w->store().project().setFiles({{QStringLiteral("/models/a.onnx"), {}, false}});
    QVERIFY(!none->isVisible());
  }

  void aTraceKeepsBothPartsOfItsSuffix() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->actions()[QStringLiteral("report_trace")]->trigger(); });
    QFileDialog* dialog = nullptr;
    QVERIFY(w.loop().wait([&] { return (dialog = w->findChild<QFileDialog*>(QStringLiteral("save_dialog"))) != nullptr; }));
    QCOMPARE(dialog->defaultSuffix(), QStringLiteral("trace.json"));
    // Called as the model is: digits/model.onnx.
    QCOMPARE(dialog->findChild<QLineEdit*>()->text(), QStringLiteral("digits.trace.json"));
    w.loop().act([dialog] { dialog->reject(); });
  }

  // Also in texts that carry their colours with them.
  void anotherThemeIsEverywhereAtOnce() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step"), w);
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.select(Selection::ofInstruction(9)));  // not computed yet: a notice
    for (const char* id : {"node", "buffer"}) w.view(QLatin1String(id));
    QVERIFY(w.settled());
    const auto colours = [&w] {
      std::set<QString> found;
      QString all;
      for (auto* page : w->findChildren<QTextBrowser*>()) all += page->toHtml();
      for (auto* label : w->findChildren<QLabel*>()) all += label->text();
      static const QRegularExpression kColour(QStringLiteral("#[0-9a-f]{6}"));
      for (auto it = kColour.globalMatch(all); it.hasNext();) found.insert(it.next().captured());
      return found;
    };
    const auto has = [](const std::set<QString>& found, const QColor& colour) { return found.contains(colour.name()); };
    const Tokens &light = Tokens::of(Theme::kLight), &dark = Tokens::of(Theme::kDark);
    const std::set<QString> before = colours();
    QVERIFY(has(before, light.accent) && has(before, light.muted) && has(before, light.currentRow) &&
            has(before, light.text));
    QVERIFY_DONE(w.act("theme"), w);
    const std::set<QString> after = colours();
    for (QColor Tokens::*colour : {&Tokens::accent, &Tokens::muted, &Tokens::currentRow, &Tokens::text, &Tokens::ok})
      QVERIFY2(!has(before, light.*colour) || (has(after, dark.*colour) && !has(after, light.*colour)),
               qPrintable((light.*colour).name()));
    QVERIFY_DONE(w.act("theme"), w);
    QVERIFY(colours() == before);
  }

  void theNameOfATableSaysWhatStandsInIt() {
    QTemporaryDir folder;
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    const QString tip = w->actions()[QStringLiteral("report_csv")]->statusTip();
    for (const auto& [ending, begins] :
         {std::pair{".csv", "step,loss"}, std::pair{".ops.csv", "op,"},
          std::pair{".instructions.csv", "position,node,op,label,phase,module_path"},
          std::pair{".roofline.csv", "position,node,op,label,phase,category"}, std::pair{".phases.csv", "depth,name"}}) {
      const QString path = folder.filePath(QStringLiteral("r") + QLatin1String(ending));
      QVERIFY(QLatin1String(ending) == QLatin1String(".csv") || tip.contains(QLatin1String(ending)));
      QVERIFY_DONE(w.exportTo("report_csv", path), w);
      QFile file(path);
      QVERIFY2(file.open(QIODevice::ReadOnly), ending);
      const QByteArray header = file.readLine();
      QVERIFY2(header.startsWith(begins), header.constData());
    }
  }

  void whatPassesByInARunIsNotFetched() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    QVERIFY(w.select(Selection::ofInstruction(4)));
    const int value = w->selection().selection().value;
    QSignalSpy wanted(&w->wishes(), &Wishes::fetchTensor);
    int whileRunning = 0;
    connect(&w->wishes(), &Wishes::fetchTensor, this,
            [&](int v) { whileRunning += v == value && Running::of(w->store()).on(); });
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return w->store().steps().size() >= 3; }));
    QVERIFY(Running::of(w->store()).on());
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QVERIFY(!Running::of(w->store()).on());
    QCOMPARE(whileRunning, 0);
    QVERIFY2(!wanted.isEmpty(), "where the run stops its values are read");
    QVERIFY(w->store().tensor(value));
  }

  void thePaletteGivesTheKeyboardBack() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    QApplication::setActiveWindow(&*w);
    auto* tree = w.view(QStringLiteral("instructions"))->findChild<QAbstractItemView*>();
    QVERIFY(tree);
    tree->setFocus();
    auto* box = w->findChild<QLineEdit*>(QStringLiteral("palette_box"));
    for (const Qt::Key key : {Qt::Key_Escape, Qt::Key_Return}) {
      QVERIFY(w.act("goto"));
      box = w->findChild<QLineEdit*>(QStringLiteral("palette_box"));
      QVERIFY(box && box->hasFocus());
      w.loop().act([&] { box->setText(QStringLiteral("Conv")); });
      QVERIFY(w.settled());
      w.loop().act([&] { QTest::keyClick(box, key); });
      QVERIFY(!box->isVisible());
      QCOMPARE(QApplication::focusWidget(), tree);
    }
  }

  void anElementThatTheTypeCannotHoldIsRefused() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    QVERIFY(w.act("step"));
    int labels = -1;
    for (const auto& v : w->store().graph()->graph().values())
      if (v.name() == "label") labels = v.id();
    QVERIFY(labels >= 0);
    emit w->wishes().editTensor(labels, {0}, std::numeric_limits<double>::quiet_NaN(), false);
    QVERIFY(w.settled());
    QVERIFY2(
        w->notice().text().contains(QStringLiteral("'label': nan is not a number of type int64; expected a whole number")),
        qPrintable(w->notice().text()));
  }

  void whereThereAreNoElementsTheReasonStands() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    QVERIFY(w.act("step"));
    QVERIFY(w.select(Selection::ofInstruction(w->store().plan()->plan().first_backward() + 1)));
    auto* none = w.view(QStringLiteral("tensors"))->findChild<QLabel*>(QStringLiteral("tensor_none"));
    QVERIFY(none && none->isVisible());
    QVERIFY2(none->text().startsWith(QStringLiteral("No elements yet: instruction ")), qPrintable(none->text()));
    QVERIFY(w.select(Selection::ofInstruction(0)));
    QVERIFY(!none->isVisible());
    // What comes then is not cut: whole columns share the place.
    auto* elements = w.view(QStringLiteral("tensors"))->findChild<QTableView*>(QStringLiteral("tensor_elements"));
    QVERIFY(elements && elements->isVisible());
    const int column = elements->columnWidth(0), room = elements->viewport()->width();
    QVERIFY2(room / column * column > room - std::max(1, room / column) - 1,
             qPrintable(QStringLiteral("%1 of %2").arg(column).arg(room)));
  }

  void theSelectedModuleIsSelectedOverItsWholeRow() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    w.loop().act([&] { w->applyLayout(QStringLiteral("Explore")); });
    QVERIFY(w.settled());
    auto* tree = w->findChild<QTreeWidget*>(QStringLiteral("model_tree"));
    QVERIFY2(tree && tree->isVisible(), "the model stands in front, though it stood behind the instructions before");
    QVERIFY(w.loop().wait([&] { return tree->topLevelItemCount() > 0; }));
    QTreeWidgetItem* item = tree->topLevelItem(0)->child(0);
    w.loop().act([&] { tree->setCurrentItem(item); });
    QVERIFY(w.settled());
    const QImage image = tree->viewport()->grab().toImage();
    QRect row = tree->visualItemRect(tree->currentItem());
    for (int c = 1; c < 4; ++c) {
      const QRect cell = tree->visualRect(tree->indexFromItem(tree->currentItem(), c));
      QCOMPARE(coloured(image, cell, Tokens::current().select), cell.width());
    }
    QVERIFY(row.isValid());
  }

  void numbersOfAnAxisAreWrittenAsInTables() {
    QCustomPlot plot;
    plot.resize(300, 200);
    dressAxes(plot);
    const auto labels = [&](double from, double to, int count) {
      plot.yAxis->ticker()->setTickCount(count);
      plot.yAxis->setRange(from, to);
      plot.replot();
      return plot.yAxis->tickVectorLabels().toList();
    };
    QCOMPARE(labels(-0.32, 0.31, 5),
             QStringList({QStringLiteral("−0.3"), QStringLiteral("−0.2"), QStringLiteral("−0.1"), QStringLiteral("0"),
                          QStringLiteral("0.1"), QStringLiteral("0.2"), QStringLiteral("0.3")}));
    // One count of decimals.
    for (const QString& label : labels(220.308, 220.341, 5)) QVERIFY2(label.section('.', 1).size() == 3, qPrintable(label));
    for (const QString& label : labels(-2e-9, 2e-9, 4)) QVERIFY2(!label.startsWith('-'), qPrintable(label));
    countWhole(*plot.xAxis);
    const QSharedPointer<QCPAxisTicker> whole = plot.xAxis->ticker();
    dressAxes(plot);  // another theme
    QCOMPARE(plot.xAxis->ticker(), whole);
  }

  // The cursor of the memory map ends where a label stands.
  void noLineRunsThroughALabelOfTheMemoryMap() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[1]));
    QVERIFY(w.loop().wait([&] { return w.view(QStringLiteral("memory"))->isVisible(); }));
    const int cursor = w->store().plan()->size() / 2;
    w.loop().act([&] { w->session().runTo(cursor); });
    QVERIFY(w.settled());
    QVERIFY(w.select(Selection::ofInstruction(cursor - 1)));
    View* memory = w.view(QStringLiteral("memory"));
    w.loop().wait([&w] { return w->idle(); });
    QTest::qWait(200);
    const QImage image = memory->grab().toImage();
    const Tokens& t = Tokens::current();
    int line = -1;
    for (int x = 0; x < image.width() && line < 0; ++x) {
      int found = 0;
      for (int y = 0; y < image.height(); ++y) found += near(image.pixelColor(x, y), t.warn);
      if (found > image.height() / 2) line = x;
    }
    QVERIFY2(line > 0, "the cursor is shown");
    const int height = QFontMetrics(smallFont()).height(), reach = 8 * Metrics::current().unit;
    for (int row = 0; row < 2; ++row) {
      const int top = 3 + row * height, bottom = row * height + height;
      bool left = false, right = false;
      int struck = 0;
      for (int y = top; y <= bottom; ++y) {
        for (int x = std::max(0, line - reach); x < line - 3; ++x)
          left = left || contrast(image.pixelColor(x, y), t.panel) > 3;
        for (int x = line + 4; x < std::min(image.width(), line + reach); ++x)
          right = right || contrast(image.pixelColor(x, y), t.panel) > 3;
        struck += near(image.pixelColor(line, y), t.warn);
      }
      if (left && right) QVERIFY2(struck < (bottom - top) / 2, qPrintable(QStringLiteral("line %1 of the labels").arg(row)));
    }
  }

  // Where not all tabs fit, something shows that there are more.
  void tabsThatDoNotFitAreReached() {
    WindowDriver w(QSize(1024, 700));
    QVERIFY(w->width() <= 1024);
    QVERIFY(w.build(bundledModels()[0]));
    bool overflow = false;
    for (auto* more : w->findChildren<QToolButton*>(QStringLiteral("more_views"))) {
      if (!more->isVisible()) continue;
      overflow = true;
      const QImage image = more->grab().toImage();
      int dark = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) dark += contrast(image.pixelColor(x, y), Tokens::current().raised) >= 3;
      QVERIFY2(dark >= 6, "it is to be seen");
      // What it lists and what is shown is everything; what is chosen there comes to the front.
      auto* tabs = more->parentWidget()->findChild<QTabBar*>();
      int shown = 0;
      for (int i = 0; i < tabs->count(); ++i) shown += tabs->isTabVisible(i);
      emit more->menu()->aboutToShow();
      const auto listed = more->menu()->actions();
      QCOMPARE(shown + listed.size(), tabs->count());
      QAction* last = listed.back();
      const QString name = last->text();
      w.loop().act([last] { last->trigger(); });
      QCOMPARE(tabs->tabText(tabs->currentIndex()), name);
    }
    QVERIFY(overflow);
  }

  // However narrow an area is, and whichever of its views is in front, its tab is to be seen.
  void theTabInFrontIsAlwaysShown() {
    WindowDriver w(QSize(1280, 800));
    QVERIFY(w.build(bundledModels()[0]));
    int areas = 0;
    for (const int width : {120, 200, 330, 620}) {
      for (auto* group : w->findChildren<PanelGroup*>()) {
        auto* tabs = group->findChild<PanelTabs*>();
        if (!group->isVisible() || group->isEmpty()) continue;
        ++areas;
        w.loop().act([&] { group->resize(width, group->height()); });
        for (const QString& id : group->ids()) {
          w.loop().act([&] { group->bringToFront(id); });
          const QRect tab = tabs->tabRect(tabs->currentIndex());
          const QRect there(tabs->mapTo(group, tab.topLeft()), tab.size());
          QVERIFY2(tabs->isTabVisible(tabs->currentIndex()) && tab.width() > 20 && group->rect().contains(there),
                   qPrintable(QStringLiteral("%1 in %2 pixels: its tab is %3 wide, at %4")
                                  .arg(id)
                                  .arg(width)
                                  .arg(tab.width())
                                  .arg(there.x())));
          QCOMPARE(group->frontId(), id);
        }
      }
    }
    QVERIFY(areas >= 8);
  }
};

SS_QT_CLASS(QApplication, MannersTest)
#include "tst_manners.moc"
