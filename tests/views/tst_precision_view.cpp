// SPDX-License-Identifier: GPL-3.0-or-later
// A study as the Precision view shows it: tables, histograms of exponents, and what it asks for.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <limits>

#include "tests/support/qt_classes.h"
#include "tests/views/view_bench.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/precision/exponent_delegate.h"
#include "views/precision/precision_rows.h"
#include "views/precision/precision_view.h"

using namespace stepscope;

namespace {

std::shared_ptr<snapshot::PrecisionReport> report() {
  auto r = std::make_shared<snapshot::PrecisionReport>();
  r->set_precision("fp16");
  r->set_step(4);
  r->set_loss_scale(1);
  r->set_error(0.01);
  r->set_loss_error(0.001);
  auto* c = r->add_classes();
  c->set_tensors("activation");
  c->set_dtype("float16");
  c->set_values(2);
  c->set_elements(1000);
  c->set_compared(500);
  c->set_flushed(5);
  c->set_near_overflow(10);
  c->set_first_exponent(-16);
  for (int e = -16; e <= 15; ++e) {
    c->add_counts(e + 17);
    c->add_reference_counts(3);
  }
  for (const char* name : {"h.0/Add_0", "a.b\xe2\x80\xae", "third"}) {
    auto* n = r->add_nodes();
    n->set_node(name);
    n->set_op("MatMul");
    n->set_added(0.004);
    n->set_override("^" + std::string(name) + "$:fp32");
  }
  r->mutable_nodes(0)->set_measured(true);
  r->mutable_nodes(0)->set_error_with_override(0.002);
  auto* g = r->add_gradients();
  g->set_name("w");
  g->set_cosine(0.5);
  g->set_error(0.01);
  r->mutable_cost()->set_bytes_before(1 << 20);
  r->mutable_cost()->set_bytes_after(1 << 19);
  r->mutable_cost()->set_ns_before(2e6);
  r->mutable_cost()->set_ns_after(1e6);
  r->mutable_cost()->set_steps(5);
  return r;
}

QString text(const QTableView* table, int row, int column) { return table->model()->index(row, column).data().toString(); }

// A bench with a plan and two options.
struct StudyBench : Bench {
  PrecisionView view{context()};
  const QTableView *nodes = child<QTableView>(view, "precision_nodes"),
                   *classes = child<QTableView>(view, "precision_classes"),
                   *gradients = child<QTableView>(view, "precision_gradients");
  QPushButton *study = view.findChild<QPushButton*>(QStringLiteral("precision_study")),
              *apply = view.findChild<QPushButton*>(QStringLiteral("precision_apply"));

  StudyBench() {
    store.setGraph(graph());
    store.setPlan(PlanSnapshot::make({}));
    store.setWorkerState(WorkerState::kIdle, {});
    options("fp32", "");
    snapshot::Position position;
    position.set_step(4);
    store.setPosition(position);
    view.resize(900, 400);
    view.show();
  }
  void options(const char* precision, const char* force) {
    std::vector<snapshot::Option> all(2);
    all[0].set_name("precision");
    all[0].set_value(precision);
    all[1].set_name("precision.force");
    all[1].set_value(force);
    store.setOptions(all);
  }
  // Into the folder that STEPSCOPE_PICTURES names; without it nothing.
  void picture(const QString& name) {
    const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES");
    if (!folder.isEmpty()) QVERIFY(view.grab().save(folder + u'/' + name + QStringLiteral(".png")));
  }
  bool says(const QString& part) const {
    for (const QLabel* label : view.findChildren<QLabel*>())
      if (label->isVisible() && label->text().contains(part)) return true;
    return false;
  }
};

}  // namespace

class PrecisionViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void emptyItSaysWhatToDo() {
    Bench b;
    PrecisionView view(b.context());
    QVERIFY(view.emptyText().contains(QStringLiteral("No plan yet")));
    b.store.setReadOnly(true);
    QVERIFY(view.emptyText().contains(QStringLiteral("A recorded project")));
    StudyBench s;
    QVERIFY(s.view.emptyText().isEmpty());
    QVERIFY(s.study->isEnabled());
    QVERIFY(!s.apply->isEnabled());
    QCOMPARE(s.nodes->model()->rowCount(), 0);
    QSignalSpy asked(&s.wishes, &Wishes::studyPrecision);
    s.study->click();
    QCOMPARE(asked.size(), 1);
    QCOMPARE(asked[0][0].toString(), QStringLiteral("bf16"));
    s.store.findings().beginPrecision();
    QVERIFY(!s.study->isEnabled());
    s.store.findings().setPrecision(nullptr, QStringLiteral("precision: cancelled"));
    QVERIFY(s.study->isEnabled());
    QVERIFY(s.says(QStringLiteral("cancelled")));
  }

  // Noise beside noise is no error, and is told as none.
  void aGradientThatIsZeroUpToRoundingHasNoError() {
    auto study = report();
    auto* g = study->add_gradients();
    g->set_name("key.bias");
    g->set_error(16143);
    g->set_max_rel(2);
    g->set_update_error(358);
    g->set_norm(1.8e-10);
    g->set_terms(2e-3);
    g->set_zero(true);
    const auto rows = precision::gradientRows(*study, nullptr);
    QCOMPARE(rows[0].cells[1].text, QStringLiteral("0.0100"));
    QCOMPARE(rows[1].cells[1].text, QStringLiteral("zero up to rounding"));
    QVERIFY(rows[1].cells[1].sort.toDouble() < rows[0].cells[1].sort.toDouble());
    for (const TableCell& cell : rows[1].cells) QVERIFY(!cell.text.contains(QStringLiteral("358")));
    QVERIFY2(rows[1].cells[1].tip.contains(QStringLiteral("rounding leaves of terms that cancel")),
             qPrintable(rows[1].cells[1].tip));
  }

  void aStudyFillsItsTables() {
    StudyBench s;
    QAbstractItemModelTester tester(const_cast<QAbstractItemModel*>(s.nodes->model()),
                                    QAbstractItemModelTester::FailureReportingMode::QtTest);
    s.store.findings().setPrecision(report(), {});
    QVERIFY(s.says(QStringLiteral("fp16 against fp32, step 4")));
    QVERIFY(s.says(QStringLiteral("1.00 MiB → 512 KiB")));
    QCOMPARE(s.nodes->model()->rowCount(), 3);
    QCOMPARE(text(s.nodes, 0, 0), QStringLiteral("h.0/Add_0"));
    QCOMPARE(text(s.nodes, 0, 3), QStringLiteral("0.00200"));
    QCOMPARE(text(s.nodes, 1, 3), QStringLiteral("–"));
    QVERIFY(!text(s.nodes, 1, 0).contains(QChar(0x202e)));  // hostile text is made visible
    QCOMPARE(text(s.classes, 0, 3), QStringLiteral("1 %"));
    QVERIFY(text(s.gradients, 0, 2).startsWith(QStringLiteral("0.5")));
    const QAbstractItemModel& classes = *s.classes->model();
    QVERIFY(classes.headerData(precision::kExponents, Qt::Horizontal).toString().contains(QStringLiteral("2^-16")));
    QVERIFY(
        classes.index(0, precision::kExponents).data(Qt::ToolTipRole).toString().contains(QStringLiteral("2^-16 to 2^15")));
    // A project, a model or a worker that went leaves nothing behind.
    s.store.findings().clear();
    QCOMPARE(s.nodes->model()->rowCount(), 0);
    QVERIFY(!s.says(QStringLiteral("against fp32")));
  }

  void anOverrideIsAskedForWithItsPrecision() {
    StudyBench s;
    s.store.findings().setPrecision(report(), {});
    QVERIFY(s.apply->isEnabled());  // the first row is chosen
    QSignalSpy set(&s.wishes, &Wishes::setOption);
    s.apply->click();
    QCOMPARE(set.size(), 2);
    QCOMPARE(set[0][0].toString(), QStringLiteral("precision"));
    QCOMPARE(set[0][1].toString(), QStringLiteral("fp16"));
    QCOMPARE(set[1][0].toString(), QStringLiteral("precision.force"));
    QCOMPARE(set[1][1].toString(), QStringLiteral("^h.0/Add_0$:fp32"));
    s.options("fp16", "^h.0/Add_0$:fp32");
    QVERIFY2(!s.apply->isEnabled(), "it is applied");
    QVERIFY(s.says(QStringLiteral("without an override")));  // the study is of before
    auto* nodes = const_cast<QTableView*>(s.nodes);
    nodes->selectRow(2);
    QVERIFY(s.apply->isEnabled());
    s.apply->click();
    QCOMPARE(set.back()[1].toString(), QStringLiteral("^third$:fp32 ^h.0/Add_0$:fp32"));
  }

  void theExponentsAreDrawnInBothThemes() {
    for (const Theme theme : {Theme::kLight, Theme::kDark}) {
      applyTheme(*qApp, theme);
      StudyBench s;
      s.store.findings().setPrecision(report(), {});
      const QString look = theme == Theme::kLight ? QStringLiteral("-light") : QStringLiteral("-dark");
      s.picture(QStringLiteral("precision-nodes") + look);
      for (auto* button : s.view.findChildren<QToolButton*>())
        if (button->text() == u"Tensors") button->click();
      QTRY_VERIFY(s.classes->isVisible());
      s.picture(QStringLiteral("precision-tensors") + look);
      const QRect cell = s.classes->visualRect(s.classes->model()->index(0, precision::kExponents));
      const QImage image = s.classes->viewport()->grab(cell).toImage();
      const Tokens& t = Tokens::current();
      int own = 0, amber = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) {
          own += image.pixelColor(x, y) == t.series(0);
          amber += image.pixelColor(x, y) == t.warn;
        }
      QVERIFY2(own > 50, qPrintable(QString::number(own)));
      QVERIFY2(amber > 10, qPrintable(QString::number(amber)));
    }
    applyTheme(*qApp, Theme::kLight);
  }

  // What a worker sends may be anything.
  void numbersFromAWorkerAreNoHarm() {
    StudyBench s;
    auto r = report();
    auto* c = r->mutable_classes(0);
    c->set_first_exponent(std::numeric_limits<int>::max() - 1);
    c->set_elements(-1);
    c->clear_reference_counts();
    c->set_counts(0, -5);
    auto* other = r->add_classes();
    other->set_first_exponent(std::numeric_limits<int>::min());
    other->add_counts(1);
    r->mutable_gradients(0)->set_error(std::numeric_limits<double>::infinity());
    r->mutable_gradients(0)->set_cosine(std::numeric_limits<double>::quiet_NaN());
    r->mutable_cost()->set_ns_after(std::numeric_limits<double>::quiet_NaN());
    s.store.findings().setPrecision(r, {});
    QCOMPARE(text(s.gradients, 0, 1), QStringLiteral("not finite"));
    for (auto* button : s.view.findChildren<QToolButton*>()) {
      button->click();
      QVERIFY(s.view.grab().width() > 0);
    }
  }
};

SS_QT_CLASS(QApplication, PrecisionViewTest)
#include "tst_precision_view.moc"
