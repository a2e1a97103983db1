// SPDX-License-Identifier: GPL-3.0-or-later
// What helps in lists and queries: options that were changed and what they save, words that fit a query, medians of
// instructions.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <algorithm>
#include <memory>

#include "tests/support/qt_classes.h"
#include "tests/views/view_bench.h"
#include "views/common/findings.h"
#include "views/common/median_times.h"
#include "views/common/tokens.h"
#include "views/determinism/determinism_view.h"
#include "views/open_dialog/model_tables.h"
#include "views/options/options_view.h"
#include "views/sql/sql_completer.h"
#include "views/sql/sql_view.h"
#include "views/trials/why_panel.h"

using namespace stepscope;

namespace {

snapshot::Option option(const char* name, const char* value, const char* byDefault) {
  snapshot::Option o;
  o.set_name(name);
  o.set_value(value);
  o.set_default_value(byDefault);
  return o;
}

QString cell(const QTableView* table, int row, int column) { return table->model()->index(row, column).data().toString(); }

StepPtr timed(std::int64_t step, std::int64_t ns, bool warmUp) {
  auto record = std::make_shared<snapshot::StepRecord>();
  record->set_step(step);
  record->set_warm_up(warmUp);
  auto* span = record->add_spans();
  span->set_instruction(0);
  span->set_node(7);
  span->set_begin_ns(0);
  span->set_end_ns(ns);
  return record;
}

}  // namespace

class ListsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  // What is wrong with a file is read in full: its words wrap, and a column that nothing fills is not there.
  void aProblemIsReadInFull() {
    snapshot::ModelInfo model;
    auto* problem = model.add_problems();
    problem->set_where("model");
    problem->set_message(
        "model '/work/some/folder/that/has/quite/a/long/name/trunc.onnx': truncated field at byte 33 of 500000; expected an "
        "ONNX protobuf file");
    std::unique_ptr<QWidget> page(problemsTable(model));
    auto* table = static_cast<QTableView*>(page.get());
    table->resize(420, 300);
    table->show();
    QTest::qWait(20);
    QCOMPARE(table->model()->columnCount(), 2);
    const int wide = table->columnWidth(1), lines = table->rowHeight(0) / table->fontMetrics().lineSpacing();
    const int needed = table->fontMetrics().horizontalAdvance(cell(table, 0, 1));
    QVERIFY2(lines * (wide - 16) >= needed,
             qPrintable(QStringLiteral("%1 lines of %2 for %3").arg(lines).arg(wide).arg(needed)));
    QVERIFY(lines >= 2);
    problem->set_hint("export it again");
    page.reset(problemsTable(model));
    QCOMPARE(static_cast<QTableView*>(page.get())->model()->columnCount(), 3);
  }

  // What is not known is no verdict on threads; what moves the result of a node is called as among the instructions.
  void verdictsAreCountedByWhatTheySay() {
    Bench b;
    DeterminismView view(b.context());
    view.resize(900, 400);
    view.show();
    const GraphPtr g = graph();
    b.store.setGraph(g);
    snapshot::Plan plan;
    std::vector<snapshot::Determinism> verdicts;
    const auto add = [&](int node, const char* verdict, snapshot::InstructionKind kind) {
      auto* in = plan.add_instructions();
      in->set_node(node);
      in->set_kind(kind);
      in->set_op(kind == snapshot::KIND_KERNEL ? g->node(node)->op() : std::string());
      verdicts.emplace_back().set_node(node);
      verdicts.back().set_verdict(verdict);
    };
    add(0, "deterministic", snapshot::KIND_KERNEL);
    add(1, "depends on thread count", snapshot::KIND_KERNEL);
    add(2, "depends on thread count", snapshot::KIND_KERNEL);
    add(3, "differs from run to run", snapshot::KIND_KERNEL);
    add(3, "not known yet", snapshot::KIND_COMMIT);
    b.store.setPlan(PlanSnapshot::make(plan));
    b.store.setDeterminism(verdicts);
    auto* table = view.findChild<QTableView*>();
    QTRY_COMPARE(table->model()->rowCount(), 5);
    const auto said = [&view](const QString& text) {
      const auto labels = view.findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(), [&text](const QLabel* label) { return label->text() == text; });
    };
    QVERIFY(said(QStringLiteral(
        "1 of 5 nodes are deterministic; 2 for one number of threads; 1 differ from run to run; 1 not known yet")));
    QVERIFY2(cell(table, 4, 0).startsWith(QStringLiteral("Commit ")), qPrintable(cell(table, 4, 0)));
    QVERIFY(!cell(table, 3, 0).startsWith(QStringLiteral("Commit ")));
    verdicts.resize(1);
    b.store.setDeterminism(verdicts);
    QTRY_VERIFY(said(QStringLiteral("All 1 nodes are deterministic")));
  }

  // An option that was chosen stays chosen when facts arrive, also where a filter or an order moves its row.
  void theChosenOptionStaysChosen() {
    Bench b;
    b.store.setOptions({option("pass.a", "on", "on"), option("pass.b", "on", "on"), option("pass.c", "on", "on")});
    OptionsView view(b.context());
    view.resize(900, 400);
    view.show();
    auto* table = view.findChild<QTableView*>(QStringLiteral("options_table"));
    auto* value = view.findChild<QComboBox*>();
    QLineEdit* filter = nullptr;
    for (auto* edit : view.findChildren<QLineEdit*>())
      if (edit->accessibleName() == QStringLiteral("Filter of Options")) filter = edit;
    QVERIFY(value && filter);
    QTRY_COMPARE(table->model()->rowCount(), 3);
    filter->setText(QStringLiteral("pass.c"));
    QTRY_COMPARE(table->model()->rowCount(), 1);
    table->selectRow(0);
    b.store.setOptions({option("pass.a", "on", "on"), option("pass.b", "on", "on"), option("pass.c", "off", "on")});
    QTRY_COMPARE(cell(table, 0, 1), QStringLiteral("– off"));
    QCOMPARE(value->currentText(), QStringLiteral("off"));
    auto waiting = option("pass.c", "off", "on");
    waiting.set_effect("pending: from the next step on");
    b.store.setOptions({option("pass.a", "on", "on"), option("pass.b", "on", "on"), waiting});
    auto* doc = view.findChild<QLabel*>(QStringLiteral("options_doc"));
    QTRY_VERIFY2(doc->text().contains(QStringLiteral("pending")), qPrintable(doc->text()));
    filter->clear();
    table->sortByColumn(0, Qt::DescendingOrder);
    b.store.setOptions({option("pass.a", "on", "on"), option("pass.b", "on", "on"), option("pass.c", "off", "on")});
    QTRY_COMPARE(table->model()->rowCount(), 3);
    QCoreApplication::processEvents();
    QCOMPARE(cell(table, table->currentIndex().row(), 0), QStringLiteral("pass.c"));
    QCOMPARE(value->currentText(), QStringLiteral("off"));
  }

  void optionsShowWhatWasChangedInGroups() {
    Bench b;
    b.store.setOptions({option("lr", "0.1", "0.001"), option("pass.cse", "off", "on"), option("pass.gelu", "on", "on"),
                        option("memory.reuse", "on", "on")});
    snapshot::PhaseSpan phase;
    phase.mutable_pass()->set_name("gelu");
    phase.mutable_pass()->mutable_effect()->set_saved_bytes(2048);
    b.store.setPhases({phase});
    OptionsView view(b.context());
    view.resize(900, 400);
    view.show();
    const auto* table = view.findChild<QTableView*>(QStringLiteral("options_table"));
    QTRY_COMPARE(table->model()->rowCount(), 4);
    QCOMPARE(cell(table, 0, 0), QStringLiteral("pass.cse"));
    QCOMPARE(cell(table, 0, 3), QStringLiteral("Passes"));
    QCOMPARE(cell(table, 1, 5), QStringLiteral("2.00 KiB"));
    QCOMPARE(cell(table, 2, 3), QStringLiteral("Memory"));
    QCOMPARE(cell(table, 3, 3), QStringLiteral("Training"));
    view.findChild<QToolButton*>(QStringLiteral("options_changed"))->click();
    QTRY_COMPARE(table->model()->rowCount(), 2);
    QCOMPARE(cell(table, 0, 0), QStringLiteral("pass.cse"));
    QCOMPARE(cell(table, 1, 0), QStringLiteral("lr"));
    b.store.setOptions({option("lr", "0.001", "0.001")});
    QTRY_COMPARE(table->model()->rowCount(), 0);
    // Taken back by hand it is what it is by itself.
    view.findChild<QToolButton*>(QStringLiteral("options_changed"))->click();
    std::vector<snapshot::Option> set{option("lr", "0.001", "0.001"), option("seed", "3", "0")};
    for (auto& o : set) o.set_set_by("window");
    b.store.setOptions(set);
    QTRY_COMPARE(table->model()->rowCount(), 2);
    QCOMPARE(cell(table, 0, 2), QStringLiteral("default"));
    QCOMPARE(cell(table, 1, 2), QStringLiteral("window"));
    view.findChild<QToolButton*>(QStringLiteral("options_changed"))->click();

    // What a trial measured of another value.
    b.store.setOptions({option("pass.cse", "on", "on")});
    view.findChild<QToolButton*>(QStringLiteral("options_changed"))->click();
    snapshot::TrialsReport report;
    auto* trial = report.add_trials();
    trial->set_option("pass.cse");
    trial->set_from("on");
    trial->set_to("off");
    trial->set_rounds(8);
    trial->set_ratio(1.25);
    trial->set_verdict("slower");
    b.store.findings().trials().end(report);
    QTRY_COMPARE(table->model()->rowCount(), 1);
    QTRY_VERIFY2(cell(table, 0, 6).startsWith(QStringLiteral("off: +25")), qPrintable(cell(table, 0, 6)));
    trial->set_verdict("not shown");
    b.store.findings().trials().end(report);
    const auto tip = [&] { return table->model()->index(0, 6).data(Qt::ToolTipRole).toString(); };
    QTRY_VERIFY2(tip().contains(QStringLiteral("not enough to show a difference")), qPrintable(tip()));
  }

  // A pass that folds or removes nodes leaves none that bear its name: that is not said to be no place.
  void whyDoesNotDenyThePlacesThatItCounts() {
    Bench b;
    b.store.setOptions({option("pass.fold", "on", "on")});
    snapshot::PhaseSpan phase;
    phase.mutable_pass()->set_name("fold");
    snapshot::Trial trial;
    trial.set_option("pass.fold");
    WhyPanel panel(b.context());
    panel.resize(600, 300);
    panel.setVisible(true);
    QString texts[2];
    for (const int matches : {0, 9}) {
      phase.mutable_pass()->set_matches(matches);
      b.store.setPhases({phase});
      panel.show(&trial);
      QVERIFY(panel.findChild<QLabel*>(QStringLiteral("trials_why_words"))
                  ->text()
                  .contains(QStringLiteral("applied in %1 places").arg(matches)));
      texts[matches > 0] = panel.findChild<RowTableView*>()->accessibleDescription();
    }
    QVERIFY2(texts[0].contains(QStringLiteral("no place")), qPrintable(texts[0]));
    QVERIFY2(!texts[1].contains(QStringLiteral("no place")), qPrintable(texts[1]));
  }

  void aQueryIsOfferedWhatFits() {
    Bench b;
    b.store.project().setTables({{QStringLiteral("steps"),
                                  QStringLiteral("One row per step."),
                                  {{QStringLiteral("step"), {}}, {QStringLiteral("loss"), QStringLiteral("of the batch")}}},
                                 {QStringLiteral("runs"), {}, {{QStringLiteral("name"), {}}}}});
    QPlainTextEdit editor;
    const SqlCompleter completer(&editor, b.store.project());
    const auto words = [&](const char* text) {
      QStringList out;
      for (const auto& [word, doc] : completer.offers(QLatin1String(text), static_cast<int>(strlen(text)))) out << word;
      return out;
    };
    QCOMPARE(words("SELECT * FROM st"), (QStringList{QStringLiteral("steps"), QStringLiteral("runs")}));
    QCOMPARE(words("SELECT runs."), QStringList{QStringLiteral("name")});
    const QStringList where = words("SELECT * FROM steps WHERE lo");
    QVERIFY(where.indexOf(QStringLiteral("loss")) >= 0 &&
            where.indexOf(QStringLiteral("loss")) < where.indexOf(QStringLiteral("steps")));
    QVERIFY(!where.contains(QStringLiteral("name")));
    QVERIFY(words("SEL").contains(QStringLiteral("SELECT")));

    editor.show();
    editor.setFocus();
    editor.setPlainText(QStringLiteral("SELECT * FROM ste"));
    editor.moveCursor(QTextCursor::End);
    QTest::keyClick(&editor, Qt::Key_Space, Qt::ControlModifier);
    QTest::keyClick(&editor, Qt::Key_Return);
    QCOMPARE(editor.toPlainText(), QStringLiteral("SELECT * FROM steps"));

    // A query that is asked is covered by no list, also where the letters before were quicker than their offers.
    SqlView view(b.context());
    b.store.project().setProjectPath(QStringLiteral("/a.stepscope"));
    view.show();
    auto* query = view.findChild<QPlainTextEdit*>(QStringLiteral("sql_editor"));
    QVERIFY(query);
    const auto button = [&] {
      for (auto* each : view.findChildren<QPushButton*>())
        if (each->text() == QStringLiteral("Run")) return each;
      return static_cast<QPushButton*>(nullptr);
    };
    query->setFocus();
    QTest::keyClicks(query, QStringLiteral("SELEC"));
    const auto offered = [] {
      QTest::qWait(20);
      return std::ranges::any_of(QApplication::allWidgets(), [](const QWidget* w) {
        return w->objectName() == QStringLiteral("sql_offers") && w->isVisible();
      });
    };
    QVERIFY(offered());
    button()->click();
    QVERIFY(!offered());
    QTest::keyClick(query, Qt::Key_Backspace);
    button()->click();
    QVERIFY(!offered());
  }

  // An error is told as one, and no row of the query before stands below it.
  void aQueryThatFailsShowsNoOlderRows() {
    Bench b;
    SqlView view(b.context());
    b.store.project().setProjectPath(QStringLiteral("/a.stepscope"));
    view.show();
    const auto* table = view.findChild<QTableView*>();
    const auto* state = view.findChild<QLabel*>(QStringLiteral("sql_state"));
    QVERIFY(table && state);
    SqlAnswer answer;
    answer.columns = QStringList{QStringLiteral("step")};
    answer.rows = {{QStringLiteral("1")}, {QStringLiteral("2")}};
    b.store.project().setSql(answer);
    QCOMPARE(table->model()->rowCount(), 2);
    const QColor plain = state->palette().color(state->foregroundRole());
    SqlAnswer refused;
    refused.error = QStringLiteral("no such table: stps");
    b.store.project().setSql(refused);
    QCOMPARE(table->model()->rowCount(), 0);
    QCOMPARE(state->text(), refused.error);
    QVERIFY(state->palette().color(state->foregroundRole()) != plain);
    QCOMPARE(state->palette().color(state->foregroundRole()), Tokens::current().error);
  }

  void heatTakesTheMedianWithoutTheColdStep() {
    Bench b;
    snapshot::Plan plan;
    plan.add_instructions()->set_node(7);
    b.store.setPlan(PlanSnapshot::make(plan));
    b.store.addStep(timed(0, 900, true));
    QCOMPARE(medianTimes(b.store), std::vector<std::int64_t>{900});
    b.store.addStep(timed(1, 10, false));
    b.store.addStep(timed(2, 500, false));
    QCOMPARE(medianTimes(b.store), std::vector<std::int64_t>{255});
    b.store.addStep(timed(3, 30, false));
    QCOMPARE(medianTimes(b.store), std::vector<std::int64_t>{30});
    // Another plan: its first step is all that is known of it.
    b.store.addStep(timed(4, 700, true));
    QCOMPARE(medianTimes(b.store), std::vector<std::int64_t>{700});
  }
};

SS_QT_CLASS(QApplication, ListsTest)
#include "tst_lists.moc"
