// SPDX-License-Identifier: GPL-3.0-or-later
// The shape of the window: names for those who do not see it, keys for those who do not point, nothing cut off at any size,
// item models that keep their promises, and a training step of 100,000 nodes.
#include <QAbstractItemModelTester>
#include <QAbstractItemView>
#include <QAbstractProxyModel>
#include <QAccessible>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPlainTextEdit>
#include <QTabBar>
#include <QTabWidget>
#include <QTemporaryFile>
#include <QTest>
#include <QToolButton>
#include <set>

#include "app/workbench/view_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/row_table.h"
#include "views/common/tokens.h"
#include "views/graph/graph_view.h"
#include "views/open_dialog/set_up_dialog.h"
#include "views/palette/finder.h"

using namespace stepscope;

namespace {

QString pathOf(const QWidget* w) {
  QStringList names;
  for (; w; w = w->parentWidget())
    names.prepend(w->objectName().isEmpty() ? QString::fromLatin1(w->metaObject()->className()) : w->objectName());
  return names.join('/');
}

// A widget that a person works with, not a part of one.
bool isControl(const QWidget* w) {
  if (const auto* tabs = qobject_cast<const QTabBar*>(w); tabs && tabs->count() == 0) return false;
  if (w->objectName().startsWith(QStringLiteral("qt_")) || w->objectName().startsWith(QStringLiteral("Scroll")))
    return false;
  if (qobject_cast<const QAbstractItemView*>(w->parentWidget()) && w->inherits("QAbstractButton"))
    return false;  // the corner of a table
  if (w->inherits("QHeaderView") || w->inherits("QScrollBar") || w->inherits("QComboBoxPrivateContainer") ||
      w->inherits("QComboBoxListView"))
    return false;
  if (w->parentWidget() && (w->parentWidget()->inherits("QComboBox") || w->parentWidget()->inherits("QAbstractSpinBox") ||
                            w->parentWidget()->inherits("QLineEdit")))
    return false;
  return w->inherits("QAbstractButton") || w->inherits("QLineEdit") || w->inherits("QComboBox") ||
         w->inherits("QAbstractItemView") || w->inherits("QTabBar") || w->inherits("QAbstractSlider") ||
         w->inherits("QAbstractSpinBox") || w->inherits("QPlainTextEdit") || w->inherits("QTextEdit") ||
         (w->focusPolicy() != Qt::NoFocus && !w->inherits("QAbstractScrollArea") && w->children().isEmpty());
}

QString accessibleName(QWidget* w) {
  QAccessibleInterface* face = QAccessible::queryAccessibleInterface(w);
  return face ? face->text(QAccessible::Name) : QString();
}

QStringList nameless(QWidget& root) {
  QStringList found;
  for (QWidget* w : root.findChildren<QWidget*>()) {
    if (!w->isHidden() && isControl(w) && accessibleName(w).trimmed().isEmpty()) found << pathOf(w);
  }
  return found;
}

// Buttons and boxes that do not say what they do, and columns that do not define their quantity.
QStringList tipless(QWidget& root) {
  QStringList found;
  for (QWidget* w : root.findChildren<QWidget*>()) {
    if (const auto* table = qobject_cast<RowTableView*>(w)) {
      const auto* model = table->model();
      for (int c = 0; model && c < model->columnCount(); ++c) {
        if (model->headerData(c, Qt::Horizontal, Qt::ToolTipRole).toString().isEmpty())
          found << pathOf(w) + QStringLiteral(" column ") + model->headerData(c, Qt::Horizontal).toString();
      }
      continue;
    }
    if (w->isHidden() || !isControl(w) || !(w->inherits("QAbstractButton") || w->inherits("QComboBox"))) continue;
    // The buttons at the foot of a dialog and of a notice say all there is to say.
    if (w->parentWidget()->inherits("QDialogButtonBox") || w->parentWidget()->objectName() == u"notice") continue;
    if (pathOf(w).contains(QStringLiteral("/source/"))) continue;  // its choice of a file says it itself
    if (w->toolTip().isEmpty()) found << pathOf(w);
  }
  return found;
}

// Visible texts that do not fit where they stand.
QStringList cut(QWidget& root) {
  QStringList found;
  for (QWidget* w : root.findChildren<QWidget*>()) {
    if (!w->isVisible() || w->visibleRegion().isEmpty()) continue;
    if (const auto* label = qobject_cast<QLabel*>(w);
        label && !label->text().isEmpty() && !label->wordWrap() && label->width() + 1 < label->minimumSizeHint().width()) {
      found << pathOf(w) + QStringLiteral(" \"%1\" has %2 of %3")
                               .arg(label->text())
                               .arg(label->width())
                               .arg(label->minimumSizeHint().width());
    }
    if (const auto* button = qobject_cast<QAbstractButton*>(w);
        button && !button->text().isEmpty() && button->width() + 1 < button->minimumSizeHint().width()) {
      found << pathOf(w) + QStringLiteral(" \"%1\" has %2 of %3")
                               .arg(button->text())
                               .arg(button->width())
                               .arg(button->minimumSizeHint().width());
    }
    if (qobject_cast<QToolButton*>(w) && w->parentWidget() && !w->parentWidget()->rect().contains(w->geometry()))
      found << pathOf(w) + QStringLiteral(" lies outside its parent");
  }
  return found;
}

// Numbers of tables in view that do not fit their column, and phases without a name.
QStringList shortened(QWidget& root) {
  QStringList found;
  for (const auto* table : root.findChildren<RowTableView*>()) {
    if (!table->isVisible() || !table->model()) continue;
    const QFontMetrics metrics(table->font());
    for (int c = 0; c < table->model()->columnCount(); ++c) {
      for (int r = 0; r < std::min(table->model()->rowCount(), 60); ++r) {
        const QModelIndex at = table->model()->index(r, c);
        if (!(at.data(Qt::TextAlignmentRole).toInt() & Qt::AlignRight) ||
            metrics.horizontalAdvance(at.data().toString()) + 10 <= table->columnWidth(c))
          continue;
        found << pathOf(table) + QStringLiteral(" \"%1\" has %2").arg(at.data().toString()).arg(table->columnWidth(c));
      }
    }
  }
  for (const auto* strip : root.findChildren<PhaseStrip*>()) {
    if (strip->isVisible()) found << strip->unnamed();
  }
  return found;
}

void showEveryView(WindowDriver& w) {
  for (const ViewEntry& entry : viewList()) {
    if (QLatin1String(entry.id) != QLatin1String("start")) w.view(QLatin1String(entry.id));
  }
}

}  // namespace

class WindowTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }
  void init() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    qunsetenv("FAKE_NODES");
  }

  void everyControlHasAName() {
    QAccessible::setActive(true);
    WindowDriver w;
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY(dialog);
    QVERIFY2(nameless(*dialog).isEmpty(), qPrintable(nameless(*dialog).join('\n')));
    for (auto* tabs : dialog->findChildren<QTabWidget*>()) {
      for (int i = tabs->count() - 1; i >= 0; --i) tabs->setCurrentIndex(i);
    }
    QVERIFY2(tipless(*dialog).isEmpty(), qPrintable(tipless(*dialog).join('\n')));
    dialog->reject();
    QVERIFY(w.build(bundledModels()[0]));
    showEveryView(w);
    w.act("palette");
    w.act("keys");
    QVERIFY2(nameless(*w).isEmpty(), qPrintable(nameless(*w).join('\n')));
    QVERIFY2(tipless(*w).isEmpty(), qPrintable(tipless(*w).join('\n')));
    QAccessible::setActive(false);
  }

  void fieldsOfTheSetUpStandBelowEachOther() {
    WindowDriver w;
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY(dialog);
    for (const int more : {0, 1, 37, 200}) {
      w.loop().act([&] { dialog->resize(dialog->width() + more, dialog->height()); });
      QVERIFY(w.settled());
      const auto field = [dialog](const char* name) {
        const auto* edit = dialog->findChild<QLineEdit*>(QStringLiteral("set_up_") + QLatin1String(name));
        return std::pair(edit->mapTo(dialog, QPoint()).x(), edit->width());
      };
      QCOMPARE(field("threads"), field("lr"));
      QCOMPARE(field("clip-grad-norm"), field("lr"));
      QCOMPARE(field("seed"), field("weight-decay"));
      QCOMPARE(field("accumulate"), field("weight-decay"));
    }
    dialog->reject();
  }

  void everyActionIsReachedFromTheKeyboard() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    // In the palette, and in a menu.
    QApplication::setActiveWindow(&*w);  // the set-up dialog was the active one
    QTest::keyClick(&*w, Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
    auto* list = w->findChild<QWidget*>(QStringLiteral("palette"))->findChild<QListWidget*>();
    QVERIFY(list && list->isVisible());
    std::set<QString> listed;
    for (int i = 0; i < list->count(); ++i) listed.insert(list->item(i)->text());
    std::set<const QAction*> inMenus;
    for (const QMenu* menu : w->findChildren<QMenu*>()) {
      for (const QAction* action : menu->actions()) inMenus.insert(action);
    }
    for (const QAction* action : w->actions().all()) {
      QVERIFY2(listed.contains(action->text()), qPrintable(action->objectName()));
      const bool layout = action->objectName().startsWith(QStringLiteral("layout_"));  // its menu is made when it opens
      QVERIFY2(layout || inMenus.contains(action), qPrintable(action->objectName() + QStringLiteral(" stands in no menu")));
    }
    // Typed and run without the mouse.
    auto* box = w->findChild<QLineEdit*>(QStringLiteral("palette_box"));
    box->setText(QStringLiteral(">layout memory"));
    QTest::keyClick(box, Qt::Key_Return);
    QVERIFY(w.settled());
    QVERIFY(w->board().find(QStringLiteral("memory"))->isVisible());
    // And the keys that a debugger has.
    w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_F10); });
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), 1);
    w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_F10, Qt::ShiftModifier); });
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), 0);
    // Tab goes round and comes back.
    w->setFocus();
    std::set<QWidget*> visited;
    for (int i = 0; i < 200; ++i) {
      QTest::keyClick(qApp->focusWidget() ? qApp->focusWidget() : &*w, Qt::Key_Tab);
      if (qApp->focusWidget()) visited.insert(qApp->focusWidget());
    }
    QVERIFY2(visited.size() >= 8, qPrintable(QString::number(visited.size())));
  }

  void itemModelsKeepTheirPromises() {
    WindowDriver w;
    showEveryView(w);
    std::set<QAbstractItemModel*> models;
    for (const auto* view : w->findChildren<QAbstractItemView*>()) {
      for (QAbstractItemModel* m = view->model(); m && models.insert(m).second;) {
        const auto* proxy = qobject_cast<QAbstractProxyModel*>(m);
        m = proxy ? proxy->sourceModel() : nullptr;
        if (!m) break;
      }
    }
    QVERIFY2(models.size() >= 15, qPrintable(QString::number(models.size())));
    std::vector<std::unique_ptr<QAbstractItemModelTester>> testers;
    for (QAbstractItemModel* m : models)
      testers.push_back(
          std::make_unique<QAbstractItemModelTester>(m, QAbstractItemModelTester::FailureReportingMode::QtTest));
    QVERIFY(w.build(bundledModels()[0]));
    for (int i = 0; i < 3; ++i) QVERIFY(w.act("step"));
    QVERIFY(w.act("step_whole"));
    QVERIFY(w.act("determinism"));
    w->wishes().watch(w->store().graph()->graph().loss(), true);
    w->session().toggleBreakpoint(4);
    emit w->wishes().runSql(QStringLiteral("SELECT * FROM steps"));
    QVERIFY(w.loop().wait([&] { return !w->store().project().sqlRunning(); }));
    QVERIFY(w.act("step_whole"));
    if (auto* filter = w->findChild<QLineEdit*>(QStringLiteral("instruction_filter"))) {
      for (const char* text : {"op:Conv", "phase:backward", "nothing at all", ""}) {
        filter->setText(QLatin1String(text));
        QTest::qWait(30);
      }
    }
    QVERIFY(w.build(bundledModels()[1]));  // another model in the same window
    QVERIFY(w.act("step"));
  }

  void nothingIsCutOff_data() {
    QTest::addColumn<QSize>("size");
    QTest::newRow("1280x720") << QSize(1280, 720);  // 4K where the scale is 3
    QTest::newRow("1280x800") << QSize(1280, 800);
    QTest::newRow("1920x1080") << QSize(1920, 1080);  // 4K where the scale is 2
  }
  void nothingIsCutOff() {
    QFETCH(QSize, size);
    WindowDriver w(size);
    QCOMPARE(cut(*w).join('\n'), QString());  // the start page
    QVERIFY(w.build(bundledModels()[1]));
    QVERIFY(w.act("step_whole"));
    QApplication::setActiveWindow(&*w);  // the set-up dialog was the active one
    for (const ViewLayout& layout : shippedLayouts()) {
      w.loop().act([&] { w->applyLayout(layout.name); });
      QVERIFY(w.settled());
      const QStringList found = cut(*w);
      QVERIFY2(found.isEmpty(), qPrintable(layout.name + QStringLiteral(": ") + found.join('\n')));
      QVERIFY2(shortened(*w).isEmpty(), qPrintable(layout.name + QStringLiteral(": ") + shortened(*w).join('\n')));
      // The keyboard is in a view, not on the first button of the toolbar.
      const QWidget* focus = QApplication::focusWidget();
      QVERIFY2(focus && w->board().isAncestorOf(focus), qPrintable(layout.name + QStringLiteral(": ") + pathOf(focus)));
    }
    const QPixmap picture = w->grab();
    QCOMPARE(picture.size(), size * w->devicePixelRatio());
  }

  void aHundredThousandNodesAreOpenedSearchedAndPanned() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    qputenv("FAKE_NODES", "100000");
    QTemporaryFile model(QDir::tempPath() + QStringLiteral("/large_XXXXXX.onnx"));  // the made-up worker does not read it
    QVERIFY(model.open() && model.write("large") > 0 && model.flush());
    WindowDriver w;
    QVERIFY2(w.build({QStringLiteral("large"), model.fileName(), {}}), qPrintable(w.failure()));
    QVERIFY(w->store().graph()->nodeCount() > 95'000);
    auto* graph = static_cast<GraphView*>(w.view(QStringLiteral("graph")));
    QVERIFY(w.loop().wait([&] { return !graph->busy() && graph->canvas().isVisible(); }));
    const int last = w->store().plan()->size() - 1;
    for (const int i : {0, last / 2, last, last / 3}) {
      QVERIFY(w.select(Selection::ofInstruction(i)));
      QVERIFY(w.loop().wait([&] { return !graph->busy(); }));
    }
    for (const char* layout : {"Explore", "Memory", "Profile", "Step"}) {
      w.loop().act([&] { w->applyLayout(QLatin1String(layout)); });
      QVERIFY(w.settled());
    }
    QVERIFY(w.act("step"));
    QVERIFY(w.act("step_phase"));
    QVERIFY(w.act("fit"));
    for (int i = 0; i < 10; ++i) {
      w.loop().act([&] { QTest::keyClick(&graph->canvas(), i % 2 ? Qt::Key_Plus : Qt::Key_Minus); });
      w.settled();
    }
    // Anything is found.
    QVERIFY(w.act("goto"));
    auto* box = w->findChild<QLineEdit*>(QStringLiteral("palette_box"));
    auto* list = w->findChild<QWidget*>(QStringLiteral("palette"))->findChild<QListWidget*>();
    w.loop().act([&] { box->setText(QStringLiteral("a")); });
    QVERIFY(w.loop().wait([&] { return list->count() > 0; }));
    for (const QString& text : {QStringLiteral("h.17 weight"), QStringLiteral("matmul"), QStringLiteral("4711"),
                                QStringLiteral("no such name anywhere")}) {
      w.loop().act([&] { box->setText(text); });
      QCOMPARE(list->count() > 0, !text.startsWith(QStringLiteral("no ")));
      w.settled();
    }
    qInfo("%s", qPrintable(w.loop().text()));
    // The tables of such a graph do not fit a cache: what else runs on the machine shows. It gets twice as long again.
    const bool free = w.loop().free() || w.loop().worstMs() <= 6 * w.loop().boundMs();
    QVERIFY2(free, qPrintable(w.loop().text()));
  }
};

SS_QT_CLASS(WatchedApplication, WindowTest)
#include "tst_window.moc"
