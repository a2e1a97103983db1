// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of tables and lines of the instruction list: what a narrow one shows, and in which colours.
#include <QAbstractItemModelTester>
#include <QStyleOptionViewItem>
#include <QTest>
#include <QTextBlock>

#include "tests/support/qt_classes.h"
#include "views/common/details.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/table_panel.h"
#include "views/common/tokens.h"
#include "views/instructions/instruction_delegate.h"
#include "views/ledger/ledger_rows.h"
#include "views/trials/trial_rows.h"

using namespace stepscope;

class RowsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void rowTablePassesTheTester() {
    RowTableModel model({{QStringLiteral("a"), {}, false, 4}, {QStringLiteral("b"), {}, true, 4}});
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    std::vector<TableRow> rows(3);
    rows[0].cells = {QStringLiteral("<b>x</b>")};
    model.setRows(std::move(rows));
    QCOMPARE(model.rowCount(), 3);
    QVERIFY(model.index(0, 1).data().toString().isEmpty());
  }

  // "204 FLOP", not "204FLOP"; where there is a prefix it belongs to the unit.
  void operationsStandApartFromTheirUnit() {
    snapshot::LedgerReport report;
    for (const auto& [op, flops] : {std::pair("mask", std::int64_t{204}), std::pair("MatMul", std::int64_t{19'700})}) {
      snapshot::LedgerEntry& line = *report.add_lines();
      line.set_op(op);
      line.set_flops_useful(flops);
      line.set_ns_kernel(flops);
    }
    QStringList cells;
    for (const TableRow& row : ledger::rows(report, ledger::By::kOp, nullptr))
      for (const TableCell& cell : row.cells) cells << cell.text;
    QVERIFY2(cells.contains(QStringLiteral("204 FLOP")) && cells.contains(QStringLiteral("19.7 kFLOP")),
             qPrintable(cells.join('|')));
  }

  // Time of threads that had no core is a part of its own, and no kernel's.
  void aLedgerOfABusyMachineSaysSo() {
    snapshot::LedgerReport report;
    snapshot::LedgerEntry& line = *report.add_lines();
    line.set_ns_kernel(9'000'000);
    line.set_ns_gap(1'000'000);
    const auto sizeOf = [&](const QString& name) {
      const std::vector<ledger::Sum> sums = ledger::sums(report);
      for (const ledger::Part& part : sums.front().parts)
        if (part.name == name) return part.size;
      return -1.0;
    };
    QVERIFY(ledger::warning(report).isEmpty());
    QCOMPARE(sizeOf(QStringLiteral("kernels")), 9e6);
    report.set_threads(2);
    report.set_cpu_ns(60'000'000);
    report.set_wait_ns(40'000'000);
    report.set_wall_ns(50'000'000);
    QCOMPARE(sizeOf(QStringLiteral("kernels")), 5e6);
    QCOMPARE(sizeOf(QStringLiteral("without a core")), 4e6);
    QVERIFY2(ledger::warning(report).contains(QStringLiteral("The machine was busy: 40 %")),
             qPrintable(ledger::warning(report)));
    QVERIFY(!ledger::warning(report).contains(QStringLiteral("roofs")));
    report.set_roof_waiting(0.7);
    QVERIFY(ledger::warning(report).contains(QStringLiteral("The roofs were measured on a busy machine")));
  }

  void columnsShowTheirNumbersWholeAndShortenTexts() {
    RowTableModel model({{QStringLiteral("Name"), {}, false, 10},
                         {QStringLiteral("Bytes"), {}, true, 2},
                         {QStringLiteral("Class"), {}, false, 6},
                         {QStringLiteral("Far"), {}, true, 4}});
    RowTableView view;
    view.setModel(&model);
    view.sizeColumns(model.columns());
    const QString name = QStringLiteral("a name that takes far more room than there is in a narrow panel"),
                  number = QStringLiteral("123,456.78 MiB");
    model.setRows({TableRow{{name, number, QStringLiteral("backward value"), number}, {}, -1}});
    const QFontMetrics metrics(view.font());
    const auto wholeColumns = [&] {  // those that end within the view
      int count = 0;
      while (count < model.columnCount() &&
             view.columnViewportPosition(count) + view.columnWidth(count) <= view.viewport()->width())
        ++count;
      return count;
    };
    for (const int width : {1200, 700, 480, 340, 260}) {
      view.resize(width, 200);
      view.show();
      QTest::qWait(1);
      for (const int column : {1, 3})
        QVERIFY2(view.columnWidth(column) >= metrics.horizontalAdvance(number), qPrintable(QString::number(width)));
      if (width >= 700) QCOMPARE(wholeColumns(), 4);
      // No column is cut by the edge: it ends there, or begins behind it.
      const int whole = wholeColumns();
      QVERIFY(whole >= 1);
      if (whole < 4)
        QVERIFY2(view.columnViewportPosition(whole) >= view.viewport()->width() - 2, qPrintable(QString::number(width)));
    }
    QVERIFY(view.columnWidth(0) < metrics.horizontalAdvance(name));
    view.resize(1200, 200);
    QVERIFY(view.columnWidth(0) >= metrics.horizontalAdvance(name));
    view.setColumnWidth(0, 77);  // by hand: it stays
    view.resize(900, 200);
    QCOMPARE(view.columnWidth(0), 77);
  }

  void aTickTakesNothingFromItsText() {
    struct Ticked : RowTableModel {
      using RowTableModel::RowTableModel;
      QVariant data(const QModelIndex& index, int role) const override {
        return role == Qt::CheckStateRole && index.column() == 0 ? QVariant(Qt::Unchecked)
                                                                 : RowTableModel::data(index, role);
      }
    };
    Ticked model({{QStringLiteral("Pattern"), {}, false, 30}, {QStringLiteral("Saves"), {}, true, 6}});
    TableRow row;
    row.cells = {QStringLiteral("LayerNormalization+Gelu+"), QStringLiteral("980 KiB")};
    model.setRows({row});
    RowTableView view;
    view.setModel(&model);
    view.sizeColumns(model.columns());
    QStyleOptionViewItem option;
    option.initFrom(&view);
    option.features = QStyleOptionViewItem::HasCheckIndicator | QStyleOptionViewItem::HasDisplay;
    option.text = row.cells[0].text;
    option.rect = view.visualRect(model.index(0, 0)).adjusted(5, 0, -5, 0);  // as the delegate paints it
    const QRect text = view.style()->subElementRect(QStyle::SE_ItemViewItemText, &option, &view);
    QVERIFY2(text.width() >= view.fontMetrics().horizontalAdvance(option.text), qPrintable(QString::number(text.width())));
  }

  void aLastNumberStaysWithTheOthers() {
    RowTableView table;
    const std::vector<TableColumn> columns{{QStringLiteral("Name"), QStringLiteral("n"), false, 8},
                                           {QStringLiteral("A"), QStringLiteral("a"), true, 5},
                                           {QStringLiteral("B"), QStringLiteral("b"), true, 5}};
    RowTableModel model(columns);
    TableRow line;
    line.cells = {QStringLiteral("first"), QStringLiteral("1"), QStringLiteral("2")};
    model.setRows({line});
    table.setModel(&model);
    table.resize(600, 200);
    table.sizeColumns(columns);
    table.show();
    QCoreApplication::processEvents();
    QVERIFY(table.columnWidth(0) > 300);
    QVERIFY(table.columnWidth(2) < 120);
    QCOMPARE(table.columnWidth(0) + table.columnWidth(1) + table.columnWidth(2), table.viewport()->width());
    // A longer text further on has what is left.
    const std::vector<TableColumn> more{{QStringLiteral("Phase"), QStringLiteral("p"), false, 5},
                                        {QStringLiteral("Name"), QStringLiteral("n"), false, 12},
                                        {QStringLiteral("B"), QStringLiteral("b"), true, 5}};
    model.setColumns(more, {line});
    table.sizeColumns(more);
    QVERIFY(table.columnWidth(0) < 120);
    QVERIFY(table.columnWidth(1) > 300);
  }

  void aSelectedRowKeepsTheColoursThatMeanSomething() {
    RowTableModel model({{QStringLiteral("Verdict"), {}, false, 10}, {QStringLiteral("Change"), {}, true, 6}});
    TableRow row;
    row.cells = {QStringLiteral("plain"), QStringLiteral("−6.10 ms")};
    row.cells[1].role = QStringLiteral("ok");
    row.cells[0].swatch = QStringLiteral("matmul");
    model.setRows({row, row});
    RowTableView view;
    view.setModel(&model);
    view.sizeColumns(model.columns());
    view.resize(300, 120);
    view.show();
    const auto inked = [&](const QColor& colour) {
      const QImage image = view.viewport()->grab(view.visualRect(model.index(0, 1))).toImage();
      int most = 255;  // the nearest of its pixels: letters have soft edges
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) {
          const QColor c = image.pixelColor(x, y);
          most = std::min(most, std::max({std::abs(c.red() - colour.red()), std::abs(c.green() - colour.green()),
                                          std::abs(c.blue() - colour.blue())}));
        }
      return most < 24;
    };
    const auto exactly = [&](const QColor& colour, int column) {
      const QImage image = view.viewport()->grab(view.visualRect(model.index(0, column))).toImage();
      int count = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) count += image.pixelColor(x, y) == colour;
      return count > 9;
    };
    QVERIFY(inked(Tokens::current().ok));
    QVERIFY(exactly(Tokens::current().category(QStringLiteral("matmul")), 0));
    view.selectRow(0);
    QVERIFY(inked(Tokens::current().select));
    QVERIFY(exactly(Tokens::current().category(QStringLiteral("matmul")), 0));
    QVERIFY(inked(Tokens::current().ok));
    QVERIFY(!inked(Tokens::current().text));
  }

  void aNarrowLineOfTheListKeepsOperatorAndModule() {
    const QFontMetrics op(QApplication::font()), place(smallFont());
    const QString whole = QStringLiteral("h.1.mlp.proj · d MatMul_output_0"), module = QStringLiteral("h.1.mlp.proj");
    for (const QString& name :
         {QStringLiteral("Add"), QStringLiteral("BatchedMatMul"), QStringLiteral("SoftmaxCrossEntropyLossGrad")}) {
      for (int room = 10; room < 500; ++room) {
        const auto words = InstructionDelegate::words(name, whole, op, place, room);
        const int placeWidth = words.place.isEmpty() ? 0 : place.horizontalAdvance(words.place);
        QVERIFY2(words.opWidth + placeWidth <= room || room < op.horizontalAdvance(QStringLiteral("…")),
                 qPrintable(QString::number(room)));
        if (room >= 6 * Metrics::current().unit + Metrics::current().unit / 2)
          QVERIFY2(!words.place.isEmpty(), qPrintable(QString::number(room)));
        // Each of them has its half; neither is shortened for what the other one does not need.
        if (room / 2 > place.horizontalAdvance(module) + Metrics::current().unit)
          QVERIFY2(words.place.startsWith(module), qPrintable(words.place));
        if (room > op.horizontalAdvance(name) + place.horizontalAdvance(whole) + Metrics::current().unit) {
          QCOMPARE(words.op, name);
          QCOMPARE(words.place, whole);
        }
        if (words.op != name) QVERIFY(op.horizontalAdvance(words.op) > room / 2 - 3 * Metrics::current().unit);
      }
    }
    // In a list of 300 pixels, beside its time and bytes.
    const auto narrow = InstructionDelegate::words(QStringLiteral("BatchedMatMul"),
                                                   QStringLiteral("h.1.mlp.proj · d weight"), op, place, 130);
    QVERIFY2(narrow.place.contains(QStringLiteral("proj")) && narrow.op.size() > 5,
             qPrintable(narrow.op + ' ' + narrow.place));
  }

  void aPathGivesWayToTheNameBehindIt() {
    const QFontMetrics metrics(QApplication::font());
    const QString name = QStringLiteral("/Softmax_output_0"), whole = QStringLiteral("/transformer.h.0/attn/score") + name;
    for (int width = metrics.horizontalAdvance(whole); width > 0; --width) {
      const QString shown = format::elidedPath(whole, metrics, width);
      QVERIFY(metrics.horizontalAdvance(shown) <= width || width < metrics.horizontalAdvance(QStringLiteral("…")));
      if (width > metrics.horizontalAdvance(QStringLiteral("/t…") + name)) QVERIFY2(shown.endsWith(name), qPrintable(shown));
    }
    QCOMPARE(format::elidedPath(whole, metrics, metrics.horizontalAdvance(whole)), whole);
  }

  void aShortenedNameKeepsWholeWordsOfItsEnd() {
    const QFontMetrics metrics(QApplication::font());
    const QString dots(QChar(0x2026));
    for (const QString& name :
         {QStringLiteral("BatchedMatMul"), QStringLiteral("SoftmaxCrossEntropyLossGrad"),
          QStringLiteral("LayerNormalizationGrad"), QStringLiteral("stages.0.bn.weight"), QStringLiteral("h.1.mlp.proj"),
          QStringLiteral("convolution"), QStringLiteral("Größe_Ä.模型😀.x")}) {
      for (int width = metrics.horizontalAdvance(name); width > 0; --width) {
        const QString shown = format::elided(name, metrics, width);
        QVERIFY2(metrics.horizontalAdvance(shown) <= width, qPrintable(shown));
        const auto at = shown.indexOf(dots);
        if (shown.isEmpty() || at < 0) continue;
        const QString before = shown.left(at), after = shown.mid(at + 1);
        QVERIFY2(name.startsWith(before) && name.endsWith(after), qPrintable(shown));
        for (const QChar c : {QChar('.'), QChar('_')})
          QVERIFY2(!before.endsWith(c) && !after.startsWith(c), qPrintable(shown));
        QVERIFY2((before.isEmpty() || !before.back().isHighSurrogate()) && (after.isEmpty() || !after[0].isLowSurrogate()),
                 qPrintable(shown));
      }
    }
    const auto with = [&metrics](const QString& name, const char* room) {
      return format::elided(name, metrics,
                            metrics.horizontalAdvance(QLatin1String(room)) + metrics.horizontalAdvance(QChar(0x2026)));
    };
    QCOMPARE(with(QStringLiteral("LayerNormalizationGrad"), "LayerNormGrad"),
             QStringLiteral("LayerNorm") + dots + QStringLiteral("Grad"));
    QCOMPARE(with(QStringLiteral("SoftmaxCrossEntropyLoss"), "SoftmaxLoss"),
             QStringLiteral("Softmax") + dots + QStringLiteral("Loss"));
    QVERIFY2(with(QStringLiteral("Flatten h.1.mlp.proj"), "Flatt1.mlp.proj").endsWith(dots + QStringLiteral("mlp.proj")),
             qPrintable(with(QStringLiteral("Flatten h.1.mlp.proj"), "Flatt1.mlp.proj")));
    QCOMPARE(with(QStringLiteral("stages.0.bn.weight"), "stages.weight"),
             QStringLiteral("stages") + dots + QStringLiteral("weight"));
    // A sentence is read from its beginning.
    const QString why = QStringLiteral("every element is computed by one thread in a fixed order"),
                  part = format::elided(why, metrics, metrics.horizontalAdvance(why) / 2);
    QVERIFY2(part.endsWith(dots) && why.startsWith(part.chopped(1)) && part.size() > why.size() / 3, qPrintable(part));
    // What ends in a path is none.
    const QString place = format::elided(QStringLiteral("in place of '/h.0/attn/scale/Mul_output_0'"), metrics,
                                         metrics.horizontalAdvance(QStringLiteral("in place of 'Mul_output_0'")) + 20);
    QVERIFY2(place.endsWith(QStringLiteral("output_0'")), qPrintable(place));
  }

  void aNarrowListGivesTheRoomOfItsBytesToItsNames() {
    const QFontMetrics op(QApplication::font()), small(smallFont());
    QVERIFY(!InstructionDelegate::hasRoomForBytes(12 * Metrics::current().unit, 117, op, small));
    QVERIFY(InstructionDelegate::hasRoomForBytes(60 * Metrics::current().unit, 117, op, small));
    // Where the bytes stand an operator of usual length and its module are whole beside them.
    int width = 0;
    while (!InstructionDelegate::hasRoomForBytes(width, 117, op, small)) ++width;
    const int left = width - InstructionDelegate::columnsWidth(117, small);
    const auto words =
        InstructionDelegate::words(QStringLiteral("BatchedMatMul"), QStringLiteral("h.11.mlp.fc"), op, small, left);
    QCOMPARE(words.op, QStringLiteral("BatchedMatMul"));
    QCOMPARE(words.place, QStringLiteral("h.11.mlp.fc"));
  }

  void aTableThatGetsTheKeyboardSelectsNothing() {
    struct Panel : TablePanel {
      explicit Panel(const ViewContext& context)
          : TablePanel(context, QStringLiteral("panel"), QStringLiteral("Panel"), {{QStringLiteral("Name"), {}, false, 8}}) {
      }
      using TablePanel::setRows;
      using TablePanel::table;
    };
    SnapshotStore store;
    SelectionModel selection;
    Wishes wishes;
    Panel panel({store, selection, wishes});
    TableRow row;
    row.cells = {QStringLiteral("a")};
    row.target = Selection::ofInstruction(2);
    panel.setRows({row, row});
    panel.resize(300, 200);
    panel.show();
    QFocusEvent focus(QEvent::FocusIn, Qt::OtherFocusReason);
    QCoreApplication::sendEvent(panel.table(), &focus);
    QVERIFY(panel.table()->currentIndex().isValid());  // that is what Qt does
    QVERIFY(selection.selection().empty());
    QTest::keyClick(panel.table(), Qt::Key_Down);
    QCOMPARE(selection.selection().instruction, 2);
  }

  void aTableThatShowsNothingCountsNothing() {
    struct Panel : TablePanel {
      explicit Panel(const ViewContext& context)
          : TablePanel(context, QStringLiteral("panel"), QStringLiteral("Panel"), {{QStringLiteral("Name"), {}, false, 8}}) {
      }
      using TablePanel::setRows;
      QString emptyText() const override { return empty; }
      QString empty;
    };
    SnapshotStore store;
    SelectionModel selection;
    Wishes wishes;
    Panel panel({store, selection, wishes});
    TableRow row;
    row.cells = {QStringLiteral("a")};
    panel.setRows({row, row});
    QCOMPARE(panel.headerText(), QStringLiteral("2"));
    panel.empty = QStringLiteral("Nothing was compared yet.");
    QCOMPARE(panel.headerText(), QString());
  }

  void aNumberStaysOnTheLineOfItsUnit() {
    Details page;
    page.begin();
    page.row(QStringLiteral("Size"), Details::text(QStringLiteral("8 × 64 · 192 KiB")) +
                                         Details::quiet(QStringLiteral("in step 3, 4.37 GFLOP/s, 50 %, 3 of 7")));
    page.amounts({{QStringLiteral("stash"), QStringLiteral("7.89 MiB"), QStringLiteral("68 %")},
                  {QStringLiteral("constant"), QStringLiteral("16 B"), QStringLiteral("0.1 %")}});
    page.end();
    const QString raw = page.document()->toRawText();
    for (const char* kept : {"8~×~64 ·", "192~KiB", "4.37~GFLOP/s,", "50~%,", "step 3,", "3 of 7", "7.89~MiB"})
      QVERIFY2(raw.contains(QString::fromUtf8(kept).replace('~', QChar::Nbsp)), kept);
    QVERIFY(page.toPlainText().contains(QStringLiteral("192 KiB")));  // as it is copied
    // Numbers end below each other.
    int right = 0;
    for (QTextBlock block = page.document()->begin(); block.isValid(); block = block.next())
      right += block.text().contains(QStringLiteral("MiB")) || block.text().endsWith(QStringLiteral("B"))
                   ? block.blockFormat().alignment().testFlag(Qt::AlignRight)
                   : 0;
    QCOMPARE(right, 2);
  }

  void aNumberStaysWithTheModuleThatItCounts() {
    snapshot::Graph graph;
    auto* node = graph.add_nodes();
    node->set_op("Gelu");
    node->mutable_provenance()->set_module_path("transformer.h.1.mlp.act.half");
    const auto snapshot = GraphSnapshot::make(graph);
    QCOMPARE(names::place(*snapshot, snapshot->graph().nodes(0)), QStringLiteral("h.1.mlp.act.half"));
    node->mutable_provenance()->set_module_path("transformer.h.11.mlp.c_fc");
    const auto other = GraphSnapshot::make(graph);
    QCOMPARE(names::place(*other, other->graph().nodes(0)), QStringLiteral("h.11.mlp.c_fc"));
  }

  // A size has its unit, whatever the option is called; a count has none.
  void aTrialOfASizeHasItsUnit() {
    snapshot::Option ring, width;
    ring.set_name("ring.bytes");
    ring.set_kind("bytes");
    width.set_name("some.limit");
    width.set_kind("count");
    snapshot::Trial trial;
    trial.set_from("0");
    trial.set_to("134217728");
    trial.set_option("ring.bytes");
    QCOMPARE(trials::change(trial, {ring, width}), QStringLiteral("ring.bytes  none → 128 MiB"));
    trial.set_option("some.limit");
    QCOMPARE(trials::change(trial, {ring, width}), QStringLiteral("some.limit  0 → 134217728"));
  }

  // What an interval tells alone is neither a difference nor none.
  void trialsSayWhatIsNotShown() {
    snapshot::TrialsReport report;
    for (const auto& [option, verdict, ratio] : {std::tuple{"(nothing)", "not shown", 1.02},
                                                 {"a", "not shown", 1.02},
                                                 {"b", "same", 1.0},
                                                 {"c", "slower", 1.1},
                                                 {"d", "faster", 0.9}}) {
      auto* trial = report.add_trials();
      trial->set_option(option);
      trial->set_from("on");
      trial->set_to("off");
      trial->set_rounds(40);
      trial->set_ratio(ratio);
      trial->set_low(ratio - 0.01);
      trial->set_high(ratio + 0.01);
      trial->set_adjusted_p(0.2);
      trial->set_verdict(verdict);
    }
    QStringList verdicts;
    QList<int> order;
    for (const TableRow& row : trials::rows(report, {}, false)) {
      verdicts << row.cells[1].text;
      order << row.cells[1].sort.toInt();
      if (row.cells[1].text == u"? not shown") QVERIFY(row.cells[1].tip.contains(QStringLiteral("more rounds")));
    }
    QCOMPARE(verdicts, QStringList({QStringLiteral("▼ faster"), QStringLiteral("= same"), QStringLiteral("? not shown"),
                                    QStringLiteral("▲ slower"), QStringLiteral("? not shown")}));
    QCOMPARE(order, QList<int>({0, 2, 1, 3, 1}));
    QString role;
    const QString said = trials::summary(report, false, &role);
    QVERIFY2(said.startsWith(QStringLiteral("1 faster, 1 slower, 1 without a difference")), qPrintable(said));
    QVERIFY2(said.contains(QStringLiteral("1 not shown")), qPrintable(said));
    QVERIFY2(said.contains(QStringLiteral("0 of 1 called different")), qPrintable(said));
    QCOMPARE(role, QString());
  }
};

SS_QT_CLASS(QApplication, RowsTest)
#include "tst_rows.moc"
