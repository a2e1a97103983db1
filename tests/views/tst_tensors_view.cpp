// SPDX-License-Identifier: GPL-3.0-or-later
// What the tensor view shows without a worker: slices, comparisons, a narrow panel.
#include <QComboBox>
#include <QLineEdit>
#include <QMimeData>
#include <QScrollArea>
#include <QSignalSpy>
#include <QTest>
#include <QTextCursor>
#include <QUrl>

#include "tests/support/qt_classes.h"
#include "tests/views/view_bench.h"
#include "views/common/findings.h"
#include "views/common/running.h"
#include "views/common/tokens.h"
#include "views/tensors/statistics_panel.h"
#include "views/tensors/tensors_view.h"
#include "views/tensors/value_facts.h"

using namespace stepscope;

class TensorsViewTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }

  void aSliceIsFoundAroundAnElement() {
    const std::vector<std::int64_t> dims = {4, 300, 1000};
    const Slice s = Slice::around({3, 299, 999}, dims, 64 * 1024);
    QCOMPARE(s.begin[0], std::int64_t{3});
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t index = std::vector<std::int64_t>{3, 299, 999}[i];
      QVERIFY(s.begin[i] <= index && index < s.begin[i] + s.extent[i] && s.begin[i] + s.extent[i] <= dims[i]);
    }
    QVERIFY(Slice::around({}, {}, 10).begin.empty());
  }

  // That bits depend on the number of threads is a sentence that explains itself, and no warning; that they differ from run
  // to run is one.
  void whatBitsDependOnIsExplained() {
    Bench b;
    ValueFacts facts(b.store);
    facts.resize(400, 300);
    b.store.setGraph(graph());
    const int value = graph()->graph().nodes(1).outputs(0);
    const auto show = [&](const char* verdict) {
      snapshot::Determinism node;
      node.set_node(graph()->producer(value));
      node.set_verdict(verdict);
      node.set_reason("adds in parts");
      b.store.setDeterminism({node});
      facts.showValue(value);
    };
    // Colour and tooltip of the words, by what they say.
    const auto formatOf = [&facts](const QString& words) {
      const QTextCursor found = facts.document()->find(words);
      return found.isNull() ? QTextCharFormat() : found.charFormat();
    };
    show("depends on thread count");
    const QTextCharFormat threads = formatOf(QStringLiteral("The last bits depend on the number of threads"));
    QVERIFY2(threads.isValid() && !threads.toolTip().isEmpty(), qPrintable(facts.toPlainText()));
    QVERIFY2(threads.toolTip().contains(QStringLiteral("same number of threads gives the same bits")) &&
                 threads.toolTip().contains(QStringLiteral("adds in parts")),
             qPrintable(threads.toolTip()));
    QCOMPARE(threads.foreground().color(), Tokens::current().muted);
    QVERIFY(!facts.toPlainText().contains('['));
    show("differs from run to run");
    QCOMPARE(formatOf(QStringLiteral("The last bits may differ from run to run")).foreground().color(),
             Tokens::current().warn);
    show("deterministic");
    QVERIFY(!facts.toPlainText().contains(QStringLiteral("bits")));
  }

  void theComparePageAsksAgainWhenContentsChange() {
    Bench b;
    TensorsView view(b.context());
    view.resize(320, 700);
    view.show();
    b.store.setGraph(graph());
    b.selection.select(Selection::ofValue(10));
    QSignalSpy asked(&b.wishes, &Wishes::compareWithFile), kept(&b.wishes, &Wishes::keepTensor);
    auto* panel = view.findChild<ElementsPanel*>();
    panel->openPage(ElementsPanel::kCompare);
    panel->comparison().compareWithFile(QStringLiteral("/tmp/a.npy"));
    QCOMPARE(asked.size(), 1);
    QCOMPARE(asked[0][0].toInt(), 10);
    TensorComparison found{10, QStringLiteral("/tmp/a.npy"), {}, {}};
    found.result.set_elements(6);
    found.result.set_differing(2);
    found.result.set_max_abs(0.5);
    found.result.set_a(1.5);
    found.result.set_b(2);
    found.result.add_worst_index(1);
    found.result.add_worst_index(2);
    b.store.findings().setTensorComparison(found);
    const auto text = [&panel] { return panel->comparison().findChild<Details*>()->toPlainText(); };
    QVERIFY2(text().contains(QStringLiteral("[1, 2]")) && text().contains(QStringLiteral("1.5")) &&
                 text().contains(QStringLiteral("2 of 6")),
             qPrintable(text()));
    emit b.store.positionChanged();
    QCOMPARE(asked.size(), 2);
    found.problem = QStringLiteral("array 'a.npy': found float32[3]; expected float32[2, 3]");
    b.store.findings().setTensorComparison(found);
    QVERIFY2(text().contains(QStringLiteral("expected float32[2, 3]")), qPrintable(text()));

    // Contents that are kept are compared with from then on, also those of the next value.
    panel->comparison().keep();
    QCOMPARE(kept.size(), 1);
    b.store.findings().addKept({QStringLiteral("/tmp/kept.npy"), QStringLiteral("out0"), 4});
    QCOMPARE(asked.last()[1].toString(), QStringLiteral("/tmp/kept.npy"));
    b.selection.select(Selection::ofValue(11));
    QCOMPARE(asked.last()[0].toInt(), 11);
    QCOMPARE(asked.last()[1].toString(), QStringLiteral("/tmp/kept.npy"));
    const auto* with = child<QComboBox>(view, "tensor_compare_with");
    QVERIFY(with->findData(QStringLiteral("value:10")) >= 0);  // same shape
    QVERIFY(with->findData(QStringLiteral("value:2")) < 0);    // another shape
  }

  void aDroppedArrayIsComparedWith() {
    Bench b;
    TensorsView view(b.context());
    view.show();
    b.store.setGraph(graph());
    b.selection.select(Selection::ofValue(10));
    QSignalSpy asked(&b.wishes, &Wishes::compareWithFile);
    QMimeData model, array;
    model.setUrls({QUrl::fromLocalFile(QStringLiteral("/tmp/model.onnx"))});
    array.setUrls({QUrl::fromLocalFile(QStringLiteral("/tmp/b.npy"))});
    for (QMimeData* data : {&model, &array}) {
      QDragEnterEvent enter({5, 5}, Qt::CopyAction, data, Qt::LeftButton, {});
      enter.ignore();
      QApplication::sendEvent(&view, &enter);
      QCOMPARE(enter.isAccepted(), data == &array);
    }
    QDropEvent drop({5, 5}, Qt::CopyAction, &array, Qt::LeftButton, {});
    QApplication::sendEvent(&view, &drop);
    QCOMPARE(asked.size(), 1);
    QCOMPARE(asked[0][1].toString(), QStringLiteral("/tmp/b.npy"));
  }

  // Zeros would be read as the numbers of the tensor.
  void whereNothingIsFiniteNoStatisticsAreTold() {
    StatisticsPanel panel;
    snapshot::TensorStatistics s;
    s.set_count(6);
    s.set_nan(6);
    for (int i = 0; i < 64; ++i) s.add_histogram(0);
    panel.set(&s, 1234, true, nullptr);
    const auto text = [&panel] { return panel.findChild<Details*>()->toPlainText(); };
    QVERIFY2(text().contains(QStringLiteral("none of 6")) && !text().contains(QStringLiteral("Mean")), qPrintable(text()));
    s.set_nan(5);
    s.set_mean(2);
    panel.set(&s, 1234, true, nullptr);
    QVERIFY2(text().contains(QStringLiteral("Mean")) && !text().contains(QStringLiteral("of step")), qPrintable(text()));
    panel.set(&s, 1234, false, nullptr);  // of another step than the one that is shown
    QVERIFY2(text().contains(QStringLiteral("of step 1,234")), qPrintable(text()));
    QVERIFY2(text().contains(QStringLiteral("not the present one")), qPrintable(text()));
    auto gone = std::make_shared<snapshot::TensorData>();
    gone->set_unavailable("its memory was reused");
    panel.set(&s, 1234, true, gone);
    QVERIFY2(text().contains(QStringLiteral("of step 1,234, while it was in memory")), qPrintable(text()));
    QVERIFY2(!text().contains(QStringLiteral("not the present one")), qPrintable(text()));
  }

  // What passes by in a run is not read: what stands there is of before, and nothing is said of where the run is.
  void inARunTheValuesAreThoseOfBefore() {
    Bench b;
    TensorsView view(b.context());
    view.show();
    b.store.setGraph(graph());
    b.selection.select(Selection::ofValue(10));
    snapshot::Position between;
    between.set_step(5);
    b.store.setPosition(between);
    auto values = std::make_shared<snapshot::TensorData>(*tensorOf<float>(10, "float32", {2}, {1, 2}));
    values->set_current(false);
    b.store.addTensor(values);
    const auto* facts = view.findChild<ValueFacts*>();
    const auto says = [facts](const char* what) { return facts->toPlainText().contains(QString::fromLatin1(what)); };
    QVERIFY2(says("Values of step 4: the next step has not begun"), qPrintable(facts->toPlainText()));
    Running::of(b.store).set(true);
    QVERIFY2(says("Values of step 4, before the run") && says("not the present one") && !says("has not begun"),
             qPrintable(facts->toPlainText()));
    Running::of(b.store).set(false);
    QVERIFY2(says("has not begun") && !says("before the run"), qPrintable(facts->toPlainText()));

    auto gone = std::make_shared<snapshot::TensorData>(*values);
    gone->set_unavailable("the values of step 4 are gone");
    b.store.addTensor(gone);
    QVERIFY2(says("The values of step 4 are gone"), qPrintable(facts->toPlainText()));
    Running::of(b.store).set(true);
    QVERIFY2(says("values are read where it stops") && !says("gone"), qPrintable(facts->toPlainText()));
  }

  void theSliceIsNotCutInANarrowPanel() {
    Bench b;
    TensorsView view(b.context());
    view.resize(18 * Metrics::current().unit, 700);
    view.show();
    const auto* slice = child<QLineEdit>(view, "tensor_slice");
    QVERIFY2(slice->width() >= slice->fontMetrics().horizontalAdvance(QStringLiteral("10, 0:128, 0:768")),
             qPrintable(QString::number(slice->width())));
    QVERIFY(view.rect().contains(QRect(slice->mapTo(&view, QPoint()), slice->size())));
    // As narrow as beside the set-up.
    view.resize(11 * Metrics::current().unit, 700);
    QCoreApplication::processEvents();
    const auto* scroll = view.findChild<QScrollArea*>();
    QVERIFY2(scroll->widget()->width() <= scroll->viewport()->width(),
             qPrintable(QStringLiteral("%1 of %2").arg(scroll->widget()->width()).arg(scroll->viewport()->width())));
  }
};

SS_QT_CLASS(QApplication, TensorsViewTest)
#include "tst_tensors_view.moc"
