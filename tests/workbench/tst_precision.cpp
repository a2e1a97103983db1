// SPDX-License-Identifier: GPL-3.0-or-later
// Precision in the window, with the real worker: changed in the middle of a paused step, studied, an override applied, all
// of it taken back.
#include <QLabel>
#include <QPushButton>
#include <QTableView>
#include <QTest>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"

using namespace stepscope;

namespace {

QString option(const SnapshotStore& store, const char* name) {
  for (const auto& o : store.options())
    if (o.name() == name) return QString::fromStdString(o.value());
  return {};
}

// Values of the plan that runs that are of this type.
int valuesOf(const SnapshotStore& store, const char* dtype) {
  const auto& values = store.graph()->graph().values();
  return static_cast<int>(std::count_if(values.begin(), values.end(), [&](const auto& v) { return v.dtype() == dtype; }));
}

}  // namespace

class PrecisionTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  void itIsChangedStudiedAndForcedInTheMiddleOfAStep() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[1]));
    QVERIFY(w.act("step_whole"));
    for (int i = 0; i < 5; ++i) QVERIFY(w.act("step"));
    const SnapshotStore& store = w->store();
    QVERIFY(store.position().in_step());
    const std::int64_t step = store.position().step();
    const int instruction = w.instruction();
    QCOMPARE(valuesOf(store, "bfloat16"), 0);

    // fp32 → bf16, as the list of options asks for it.
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("precision"), QStringLiteral("bf16")); });
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([&] { return store.graph() && valuesOf(store, "bfloat16") > 0; }));
    QCOMPARE(option(store, "precision"), QStringLiteral("bf16"));
    QVERIFY(store.position().in_step());
    QCOMPARE(store.position().step(), step);
    const auto proof = store.findings().optionProof();
    QVERIFY(proof && proof->values() > 0);
    QVERIFY2(!proof->equal(), "bf16 rounds");
    QCOMPARE(QString::fromStdString(proof->change()), QStringLiteral("precision = bf16"));

    QVERIFY(w.act("undo"));
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([&] { return store.graph() && valuesOf(store, "bfloat16") == 0; }));
    QCOMPARE(option(store, "precision"), QStringLiteral("fp32"));
    QCOMPARE(w.instruction(), instruction);

    // A study from here: the view says what to do, and does it.
    View* view = w.view(QStringLiteral("precision"));
    w.loop().act([&] { w->board().show(QStringLiteral("precision")); });
    auto* study = view->findChild<QPushButton*>(QStringLiteral("precision_study"));
    auto* apply = view->findChild<QPushButton*>(QStringLiteral("precision_apply"));
    auto* nodes = view->findChild<QTableView*>(QStringLiteral("precision_nodes"));
    QVERIFY(study->isEnabled() && !apply->isEnabled());
    w.loop().act([&] { study->click(); });
    QVERIFY(w.loop().wait([&] { return store.findings().precision() && !store.findings().studiesPrecision(); }));
    const auto report = store.findings().precision();
    QCOMPARE(report->precision(), std::string("bf16"));
    QCOMPARE(report->step(), step);
    QVERIFY(report->nodes_size() > 0 && report->nodes(0).measured());
    QCOMPARE(nodes->model()->rowCount(), report->nodes_size());
    QCOMPARE(w.instruction(), instruction);
    QVERIFY(store.position().in_step());

    // Its first override, and all of it taken back.
    QVERIFY(w.loop().wait([&] { return apply->isEnabled(); }));
    const int width = w->width();
    w.loop().act([&] { apply->click(); });
    QVERIFY(w.settled());
    QCOMPARE(w->width(), width);  // the note about it is as long as the name of the node
    const QString force = QString::fromStdString(report->nodes(0).override());
    QVERIFY(w.loop().wait([&] { return option(store, "precision.force") == force && !apply->isEnabled(); }));
    QCOMPARE(option(store, "precision"), QStringLiteral("bf16"));
    QVERIFY(store.position().in_step());
    QVERIFY(store.findings().optionProof()->values() > 0);
    const auto labels = view->findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* l) {
      return l->isVisible() && l->text().contains(QStringLiteral("values differ"));
    }));
    QVERIFY(w.act("undo"));
    QVERIFY(w.settled());
    QVERIFY(
        w.loop().wait([&] { return option(store, "precision") == u"fp32" && option(store, "precision.force").isEmpty(); }));
    QCOMPARE(w.instruction(), instruction);
    QVERIFY(w.act("step_whole"));
    QVERIFY(!w->notice().isProblem());
  }

  void withoutAnAnswerItSaysWhy() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    WindowDriver w;
    w->openAndBuild(QStringLiteral("/nowhere/made_up.onnx"), {});
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    View* view = w.view(QStringLiteral("precision"));
    w.loop().act([&] { w->board().show(QStringLiteral("precision")); });
    auto* study = view->findChild<QPushButton*>(QStringLiteral("precision_study"));
    w.loop().act([&] { study->click(); });
    QVERIFY(w.loop().wait([&] { return !w->store().findings().precisionProblem().isEmpty(); }));
    QVERIFY(study->isEnabled());
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }
};

SS_QT_CLASS(QApplication, PrecisionTest)
#include "tst_precision.moc"
