// SPDX-License-Identifier: GPL-3.0-or-later
// Records, their places, and rules that hide.
#include <QAbstractItemModelTester>
#include <QDateTime>
#include <QTableView>
#include <QTest>
#include <QToolButton>

#include "tests/support/qt_classes.h"
#include "tests/views/view_bench.h"
#include "views/common/tokens.h"
#include "views/log/log_view.h"

using namespace stepscope;

class LogViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  // A line says when it came, whoever wrote it.
  void everyLineHasItsTimeAndItsUnits() {
    Bench b;
    LogView view(b.context());
    view.resize(800, 300);
    view.show();
    const QDateTime before = QDateTime::currentDateTime();
    b.store.addLog({QStringLiteral("info"), QStringLiteral("now")});
    const QDateTime after = QDateTime::currentDateTime();
    const QDateTime then(before.date(), QTime(14, 3, 59, 120));
    b.store.addLog({QStringLiteral("info"), QStringLiteral("then"), then.toMSecsSinceEpoch()});
    const auto* table = child<QTableView>(view, "log_table");
    QTRY_COMPARE(table->model()->rowCount(), 2);
    const auto time = [&](int row) {
      return QTime::fromString(table->model()->index(row, 0).data().toString(), QStringLiteral("HH:mm:ss.zzz"));
    };
    if (before.date() == after.date()) QVERIFY(time(0) >= before.time() && time(0) <= after.time());
    QCOMPARE(time(1), then.time());
    // Bytes are read in their unit; as they were written they stand in the tooltip.
    b.store.addLog({QStringLiteral("info"), QStringLiteral("arena of 196608 bytes")});
    QTRY_COMPARE(table->model()->rowCount(), 3);
    const QModelIndex text = table->model()->index(2, 3);
    QCOMPARE(text.data().toString(), QStringLiteral("arena of 192 KiB"));
    QVERIFY(text.data(Qt::ToolTipRole).toString().contains(QStringLiteral("arena of 196608 bytes")));
  }

  void logRecordsNameTheirPlaceAndRulesCountWhatTheyHide() {
    Bench b;
    LogView view(b.context());
    view.resize(800, 300);
    view.show();
    b.store.setGraph(graph());
    b.store.addLog({QStringLiteral("info"), QStringLiteral("value 'out1': overflow"), 1});
    b.store.addLog({QStringLiteral("debug"), QStringLiteral("node 'h.0/Add_2' is slow"), 2});
    b.store.addLog({QStringLiteral("debug"), QStringLiteral("node 3 ran, node 77 did not"), 3});
    b.store.addLog({QStringLiteral("info"), QStringLiteral("nothing 'named' here, instruction 5"), 4});
    const auto* table = child<QTableView>(view, "log_table");
    QAbstractItemModelTester tester(const_cast<QAbstractItemModel*>(table->model()),
                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
    QTRY_COMPARE(table->model()->rowCount(), 4);
    const auto choose = [&](int row) { const_cast<QTableView*>(table)->setCurrentIndex(table->model()->index(row, 0)); };
    choose(0);
    QCOMPARE(b.selection.selection().value, 11);
    choose(1);
    QCOMPARE(b.selection.selection().node, 2);
    choose(2);
    QCOMPARE(b.selection.selection().node, 3);
    choose(3);
    QCOMPARE(b.selection.selection().node, 3);  // there is no plan: nothing is named
    view.addRule(QStringLiteral("level:debug"));
    view.addRule(QStringLiteral("OVERFLOW"));
    view.addRule(QStringLiteral("  "));
    QTRY_COMPARE(table->model()->rowCount(), 1);
    QCOMPARE(view.hiddenTexts(),
             (QStringList{QStringLiteral("2 hidden by level:debug"), QStringLiteral("1 hidden by OVERFLOW")}));
    QVERIFY(view.headerText().contains(QStringLiteral("3 hidden")));
    LogView later(b.context());
    later.restoreState(view.saveState());
    later.show();
    QTRY_COMPARE(later.hiddenTexts().size(), 2);
    for (auto* chip : view.findChildren<QToolButton*>(QStringLiteral("log_chip"))) {
      if (chip->accessibleName().contains(QStringLiteral("level:debug"))) chip->click();
    }
    QTRY_COMPARE(table->model()->rowCount(), 3);
    QCOMPARE(b.store.log().size(), std::size_t{4});
  }
};

SS_QT_CLASS(QApplication, LogViewTest)
#include "tst_log_view.moc"
