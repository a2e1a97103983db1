// SPDX-License-Identifier: GPL-3.0-or-later
// The lines of a program, and where they are found.
#include <QAbstractItemModelTester>
#include <QLabel>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include "tests/support/qt_classes.h"
#include "tests/views/view_bench.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/source/path_map_dialog.h"
#include "views/source/source_view.h"

using namespace stepscope;

class SourceViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void aPathMapLeadsNowhereElse() {
    PathMap map;
    map.add({QStringLiteral("/home/them"), QStringLiteral("/data/a")});
    map.add({QStringLiteral("/home/them/lib/"), QStringLiteral("/data/b")});
    QCOMPARE(map.resolve(QStringLiteral("/home/them/x.py")), QStringLiteral("/data/a/x.py"));
    QCOMPARE(map.resolve(QStringLiteral("/home/them/lib/y.py")), QStringLiteral("/data/b/y.py"));
    for (const char* bad : {"/home/themselves/x.py", "/home/them/../../etc/passwd", "/etc/passwd", "x.py", "", "..\\x.py",
                            "/home/them/lib/../x.py"})
      QVERIFY2(map.resolve(QString::fromLatin1(bad)).isEmpty(), bad);
    map.add({QString(), QStringLiteral("/data/c")});
    QCOMPARE(map.resolve(QStringLiteral("net/z.py")), QStringLiteral("/data/c/net/z.py"));
    QVERIFY(map.resolve(QStringLiteral("/etc/passwd")).isEmpty());
    QVERIFY(PathMap::fromText(map.text()) == map);
    QVERIFY(PathMap::fromText(QStringLiteral("{nonsense")).entries().empty());
    const auto learnt = [](const char* recorded, const char* chosen) {
      const PathMap::Entry e = PathMap::learn(QString::fromLatin1(recorded), QString::fromLatin1(chosen));
      PathMap one;
      one.add(e);
      return e.prefix + '>' + e.folder +
             (one.resolve(QString::fromLatin1(recorded)).isEmpty() ? QStringLiteral(" lost") : QString());
    };
    QCOMPARE(learnt("/home/them/p/net/model.py", "/data/p/net/model.py"), QStringLiteral("/home/them>/data"));
    QCOMPARE(learnt("model.py", "/data/p/model.py"), QStringLiteral(">/data/p"));
    QCOMPARE(learnt("net/model.py", "/data/p/other.py"), QStringLiteral("net>/data/p"));
    QCOMPARE(learnt("/model.py", "/model.py"), QStringLiteral("/>/"));
    QCOMPARE(learnt("C:\\p\\model.py", "/data/p/model.py"), QStringLiteral("C:>/data"));
  }

  void thePathMapModelIsEdited() {
    PathMapModel model({});
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    model.append({});
    model.append({QStringLiteral("/a"), QStringLiteral("/b")});
    QVERIFY(model.setData(model.index(0, PathMapModel::kFolder), QStringLiteral("/c"), Qt::EditRole));
    QCOMPARE(model.map().entries().size(), std::size_t{2});
    QVERIFY(model.removeRow(0));
    QVERIFY(!model.removeRow(7));
    QCOMPARE(model.map().resolve(QStringLiteral("/a/x.py")), QStringLiteral("/b/x.py"));
  }

  void theSourceIsTheFileWhereItIsAtHand() {
    Bench b;
    SourceView view(b.context());
    view.resize(600, 400);
    view.show();
    b.store.setGraph(graph());
    snapshot::Alert alert;
    alert.set_node(3);  // a gradient: of the line of its forward node
    b.store.addAlert(alert);
    const auto* table = child<QTableView>(view, "source_table");
    QTRY_COMPARE(table->model()->rowCount(), 2);  // recorded lines
    QCOMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("x = x + self.bias"));
    QCOMPARE(table->model()->index(0, 3).data().toString(), QStringLiteral("1"));

    QSignalSpy read(&b.wishes, &Wishes::readSource);
    view.locate(QStringLiteral("/data/project/net/model.py"));
    QCOMPARE(read.size(), 1);
    QCOMPARE(read[0][0].toString(), QStringLiteral("/data/project/net/model.py"));
    b.store.findings().setSource(read[0][0].toString(),
                                 {{"import torch", "", "\tx = x + self.bias", "", "return x", "\u202Ehostile"}, {}});
    QCOMPARE(table->model()->rowCount(), 6);
    QCOMPARE(table->model()->index(2, 4).data().toString(), QStringLiteral("    x = x + self.bias"));
    QCOMPARE(table->model()->index(5, 4).data().toString(), QStringLiteral("⟨U+202E⟩hostile"));
    QVERIFY(table->model()->index(0, 1).data().toString().isEmpty());

    // A click selects what came from the line; a selection shows its line.
    const_cast<QTableView*>(table)->setCurrentIndex(table->model()->index(4, 0));
    QCOMPARE(b.selection.selection().node, 2);
    QCOMPARE(b.selection.selection().line, 5);
    QVERIFY(b.selection.selection().group == nullptr);  // one node stands alone
    // All nodes of a line, the first one as the current; a gradient comes from the line of its forward node.
    const_cast<QTableView*>(table)->setCurrentIndex(table->model()->index(2, 0));
    QCOMPARE(b.selection.selection().node, 0);
    QVERIFY(b.selection.selection().group != nullptr);
    QCOMPARE(b.selection.selection().group->nodes(), (std::vector<int>{0, 1, 3}));
    QCOMPARE(b.selection.selection().group->name(), QStringLiteral("model.py:3"));
    QVERIFY(b.selection.selection().holds(3) && !b.selection.selection().holds(2));
    // Going back and forth keeps it.
    b.selection.goBack();
    QVERIFY(!b.selection.selection().group);
    b.selection.goForward();
    QVERIFY(b.selection.selection().holds(1));
    b.selection.select(Selection::ofNode(3));
    QTRY_COMPARE(table->currentIndex().row(), 2);
    QCOMPARE(b.selection.selection().node, 3);

    b.store.findings().setSource(read[0][0].toString(), {{"import torch", "", "x = x * self.bias"}, {}});
    QVERIFY(view.findChildren<QLabel*>().size() > 0);
    const auto says = [&view](const QString& what) {
      for (const QLabel* label : view.findChildren<QLabel*>()) {
        if (label->isVisible() && label->text().contains(what)) return true;
      }
      return false;
    };
    QVERIFY(says(QStringLiteral("another version")));
    b.store.findings().setSource(read[0][0].toString(), {{}, QStringLiteral("not found")});
    QVERIFY(says(QStringLiteral("not found")));
    QCOMPARE(table->model()->rowCount(), 2);  // as recorded again

    SourceView later(b.context());
    later.restoreState(view.saveState());
    QVERIFY(later.pathMap() == view.pathMap());
  }
};

SS_QT_CLASS(QApplication, SourceViewTest)
#include "tst_source_view.moc"
