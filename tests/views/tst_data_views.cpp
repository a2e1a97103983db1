// SPDX-License-Identifier: GPL-3.0-or-later
// Views of the data, without a worker: the tensor beside another, the batch, the source, the log.
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QMimeData>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QUrl>
#include <cmath>

#include "engine/snapshot/gradient_norm.h"
#include "views/batch/batch_view.h"
#include "views/batch/worst_row.h"
#include "views/common/counted_steps.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/log/log_view.h"
#include "views/source/path_map_dialog.h"
#include "views/source/source_view.h"
#include "views/tensors/tensors_view.h"
#include "views/value_history/value_history_view.h"

using namespace stepscope;

namespace {

struct Bench {
  SnapshotStore store;
  SelectionModel selection;
  Wishes wishes;
  ViewContext context() { return {store, selection, wishes}; }
};

snapshot::Value* addValue(snapshot::Graph& g, int id, const char* name, const char* dtype, std::vector<int> dims, snapshot::ValueRole role) {
  auto* v = g.add_values();
  v->set_id(id);
  v->set_name(name);
  v->set_dtype(dtype);
  v->set_rank_known(true);
  for (const int d : dims) v->add_dims(std::to_string(d));
  v->set_role(role);
  return v;
}

// ids [2, 3] and mask [2, 3] go through two nodes of model.py, line 3, and one of line 5; node 3 is the gradient of node 0.
GraphPtr graph() {
  snapshot::Graph g;
  addValue(g, 0, "ids", "int64", {2, 3}, snapshot::INPUT);
  addValue(g, 1, "mask", "int64", {2, 3}, snapshot::INPUT);
  addValue(g, 2, "image", "float32", {2, 1, 2, 2}, snapshot::INPUT);
  addValue(g, 3, "label", "int64", {2}, snapshot::INPUT);
  for (int i = 0; i < 4; ++i) addValue(g, 10 + i, ("out" + std::to_string(i)).c_str(), "float32", {2, 3}, snapshot::NODE_OUTPUT);
  for (int i = 0; i < 4; ++i) {
    auto* n = g.add_nodes();
    n->set_id(i);
    n->set_op("Add");
    n->set_name("h.0/Add_" + std::to_string(i));
    n->add_outputs(10 + i);
    n->set_phase(i == 3 ? snapshot::BACKWARD : snapshot::FORWARD);
    n->mutable_provenance()->set_forward(i == 3 ? 0 : -1);
    if (i == 3) continue;
    n->mutable_provenance()->set_source_file("/home/them/project/net/model.py");
    n->mutable_provenance()->set_source_line(i < 2 ? 3 : 5);
    n->mutable_provenance()->set_source_code(i < 2 ? "x = x + self.bias" : "return x");
  }
  g.add_inputs(0);
  g.add_inputs(1);
  g.add_inputs(2);
  g.add_inputs(3);
  return GraphSnapshot::make(std::move(g));
}

ModelPtr model() {
  auto m = std::make_shared<snapshot::ModelInfo>();
  for (const auto& [name, role] : {std::pair("ids", "token ids below 9"), std::pair("mask", "attention mask"), std::pair("image", "data"),
                                   std::pair("label", "class labels below 10")}) {
    auto* i = m->add_inputs();
    i->set_name(name);
    i->set_role(role);
  }
  return m;
}

template <typename T>
TensorPtr tensorOf(int value, const char* dtype, std::vector<std::int64_t> dims, const std::vector<T>& data) {
  auto t = std::make_shared<snapshot::TensorData>();
  t->set_value(value);
  t->set_dtype(dtype);
  for (const auto d : dims) {
    t->add_dims(d);
    t->add_begin(0);
    t->add_extent(d);
  }
  t->set_data(data.data(), data.size() * sizeof(T));
  t->set_current(true);
  t->set_step(4);
  return t;
}

StepPtr stepOf(std::int64_t number, std::int64_t valid) {
  auto s = std::make_shared<snapshot::StepRecord>();
  s->set_step(number);
  s->set_samples(2);
  s->set_tokens(6);
  auto* d = s->add_densities();
  d->set_input("ids");
  d->set_kind("tokens");
  d->set_valid(valid);
  d->set_total(6);
  d->set_rows(2);
  d->set_shortest(1);
  d->set_longest(3);
  d->set_reason("padding where 'mask' is 0");
  return s;
}

template <typename T>
const T* child(const QWidget& of, const char* name) {
  return of.findChild<const T*>(QLatin1String(name));
}

}  // namespace

class DataViewsTest : public QObject {
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
    QVERIFY2(text().contains(QStringLiteral("[1, 2]")) && text().contains(QStringLiteral("1.5")) && text().contains(QStringLiteral("2 of 6")),
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

  void theSliceIsNotCutInANarrowPanel() {
    Bench b;
    TensorsView view(b.context());
    view.resize(18 * Metrics::current().unit, 700);
    view.show();
    const auto* slice = child<QLineEdit>(view, "tensor_slice");
    QVERIFY2(slice->width() >= slice->fontMetrics().horizontalAdvance(QStringLiteral("10, 0:128, 0:768")), qPrintable(QString::number(slice->width())));
    QVERIFY(view.rect().contains(QRect(slice->mapTo(&view, QPoint()), slice->size())));
  }

  void tokensStandBesideTheirMask() {
    TokenTable table;
    QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::QtTest);
    const TensorValues ids(tensorOf<qint64>(0, "int64", {2, 3}, {5, 6, 0, 7, 0, 0})), mask(tensorOf<qint64>(1, "int64", {2, 3}, {1, 1, 0, 1, 0, 0}));
    table.set(ids, mask, std::nullopt);
    QCOMPARE(table.rowCount(), 2);
    QCOMPARE(table.columnCount(), 3);
    QCOMPARE(table.index(0, 1).data().toString(), QStringLiteral("6"));
    QCOMPARE(table.index(1, 2).data().toString(), QStringLiteral("(0)"));
    table.set(ids, TensorValues(), 7.0);
    QVERIFY(table.masked(1, 0) && !table.masked(0, 0));
    table.set(TensorValues(tensorOf<qint64>(0, "int64", {1 << 20, 1 << 20}, {5, 6})), mask, std::nullopt);
    QCOMPARE(table.rowCount(), 0);  // not one whole row came
    table.set(TensorValues(), TensorValues(), std::nullopt);
    QCOMPARE(table.rowCount(), 0);
  }

  void imagesBecomePictures() {
    const auto pictures = makePictures(TensorValues(tensorOf<float>(2, "float32", {2, 1, 2, 2}, {0, 1, 0.5F, std::nanf(""), -1, 0, 0, 0})), 10);
    QCOMPARE(pictures.size(), std::size_t{2});
    QCOMPARE(qRed(pictures[0].pixel(1, 0)), 255);
    QCOMPARE(qRed(pictures[1].pixel(0, 0)), 0);
    QCOMPARE(pictures[0].pixel(1, 1), Tokens::current().number.rgb());
    QVERIFY(makePictures(TensorValues(tensorOf<float>(2, "float32", {2, 5, 2, 2}, std::vector<float>(40))), 10).empty());
    QVERIFY(makePictures(TensorValues(tensorOf<float>(2, "float32", {1000, 3, 1000, 1000}, {1})), 10).empty());
    const auto rgb = makePictures(TensorValues(tensorOf<float>(2, "float32", {1, 3, 2, 2}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0})), 10);
    QCOMPARE(rgb[0].pixel(0, 0), qRgb(255, 0, 0));
    QCOMPARE(rgb[0].pixel(1, 0), qRgb(0, 255, 0));
    QCOMPARE(rgb[0].pixel(0, 1), qRgb(0, 0, 255));
  }

  void theWorstRowIsTheLargestAndNanBeatsIt() {
    snapshot::RowLosses losses;
    for (const double x : {1.0, 9.0, 3.0, 2.0}) losses.add_values(x);
    auto worst = worstRow(losses, 2);
    QVERIFY(worst.has_value());
    QCOMPARE(worst->row, 1);
    QCOMPARE(worst->sample, 0);
    QCOMPARE(worst->place, 1);
    QCOMPARE(worst->mean, 3.75);
    for (const bool ignored : {false, true, false, false}) losses.add_ignored(ignored);
    QCOMPARE(worstRow(losses, 2)->row, 2);
    QCOMPARE(worstRow(losses, 3)->sample, -1);
    losses.set_values(3, std::nan(""));
    QCOMPARE(worstRow(losses, 2)->row, 3);
    QCOMPARE(worstRow(losses, 2)->notFinite, 1);
    for (int i = 0; i < 4; ++i) losses.set_ignored(i, true);
    QVERIFY(!worstRow(losses, 2).has_value());
    QCOMPARE(firstBadSample(TensorValues(tensorOf<float>(2, "float32", {2, 2}, {0, 1, 2, std::nanf("")}))), 1);
    QCOMPARE(firstBadSample(TensorValues(tensorOf<float>(2, "float32", {2, 2}, {0, 1, 2, 3}))), -1);
  }

  void gaugesFollowTheSteps() {
    Bench b;
    QVERIFY(batchGauges(b.store, 10).empty());
    b.store.setGraph(graph());
    for (int i = 0; i < 5; ++i) b.store.addStep(stepOf(i, i + 1));
    const auto gauges = batchGauges(b.store, 3);
    QCOMPARE(gauges.size(), std::size_t{4});  // samples, tokens, density, lengths
    QCOMPARE(gauges[2].share, 5.0 / 6);
    QCOMPARE(gauges[2].history.size(), std::size_t{3});
    QCOMPARE(gauges[2].history.front(), 3.0 / 6);
    QCOMPARE(gauges[2].value, 0);
    QVERIFY(gauges[2].tip.contains(QStringLiteral("padding where 'mask' is 0")));
  }

  void theBatchViewShowsWhatCame() {
    Bench b;
    BatchView view(b.context());
    view.resize(1000, 260);
    view.show();
    QSignalSpy fetched(&b.wishes, &Wishes::fetchTensor);
    b.store.setModel(model());
    b.store.setGraph(graph());
    QCOMPARE(fetched.size(), 4);  // statistics of each input
    b.store.addStep(stepOf(4, 3));
    view.openPage(BatchView::kContents);
    QVERIFY(fetched.size() > 4);
    b.store.addTensor(tensorOf<float>(2, "float32", {2, 1, 2, 2}, std::vector<float>(8, 0.5F)));
    b.store.addTensor(tensorOf<qint64>(3, "int64", {2}, {7, 8}));
    QTest::qWait(1);
    QCOMPARE(view.findChild<PictureGrid*>()->pictures(), 2);
    b.selection.select(Selection::ofValue(0));
    b.store.addTensor(tensorOf<qint64>(0, "int64", {2, 3}, {5, 6, 0, 7, 0, 0}));
    b.store.addTensor(tensorOf<qint64>(1, "int64", {2, 3}, {1, 1, 0, 1, 0, 0}));
    QTest::qWait(1);
    const auto* tokens = child<QTableView>(view, "batch_tokens");
    QCOMPARE(tokens->model()->index(0, 2).data().toString(), QStringLiteral("(0)"));
    QSignalSpy asked(&b.wishes, &Wishes::rowLosses);
    view.openPage(BatchView::kWorst);
    QCOMPARE(asked.size(), 1);
    auto losses = std::make_shared<snapshot::RowLosses>();
    for (const double x : {1.0, 9.0, 3.0, 2.0}) losses->add_values(x);
    b.store.findings().setRowLosses(losses);
    const auto says = [&view](const QString& what) {
      for (const auto* page : view.findChildren<Details*>()) {
        if (page->isVisible() && page->toPlainText().contains(what)) return true;
      }
      return false;
    };
    QVERIFY(says(QStringLiteral("row 1 of 4: sample 0, place 1")));
    auto never = std::make_shared<snapshot::RowLosses>();
    never->set_instruction(-1);
    never->set_unavailable("the loss comes from Add 'x', which has no value per row");
    b.store.setGraph(graph());
    b.store.findings().setRowLosses(never);
    QVERIFY(says(QStringLiteral("no value per row")));
  }

  void aRecordedBatchIsShownWithoutAWorker() {
    Bench b;
    BatchView view(b.context());
    view.resize(1000, 260);
    view.show();
    QSignalSpy fetched(&b.wishes, &Wishes::fetchTensor);
    b.store.setReadOnly(true);
    b.store.setModel(model());
    b.store.setGraph(graph());
    for (int i = 0; i < 4; ++i) {
      auto step = std::make_shared<snapshot::StepRecord>(*stepOf(i, i + 1));
      if (i % 2 == 0) {
        auto* ids = step->add_inputs();
        *ids = *tensorOf<qint64>(0, "int64", {2, 3}, {5 + i, 6, 0, 7, 0, 0});
        ids->set_name("ids");
        ids->mutable_statistics()->set_count(6);
        ids->mutable_statistics()->set_max(7 + i);
        for (const double x : {1.0, 3.0 + i, 2.0}) step->mutable_row_losses()->add_values(x);
      }
      b.store.addStep(std::move(step));
    }
    QTest::qWait(1);
    const auto* table = child<QTableView>(view, "batch_table");
    QTRY_COMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("9"));  // of step 2, the newest that recorded
    auto* steps = view.findChild<QComboBox*>(QStringLiteral("batch_step"));
    QCOMPARE(steps->count(), 2);
    b.selection.select(Selection::ofValue(0));
    view.openPage(BatchView::kContents);
    const auto* tokens = child<QTableView>(view, "batch_tokens");
    QCOMPARE(tokens->model()->index(0, 0).data().toString(), QStringLiteral("7"));
    steps->setCurrentIndex(1);
    emit steps->activated(1);
    QTRY_COMPARE(table->model()->index(0, 4).data().toString(), QStringLiteral("7"));
    QCOMPARE(tokens->model()->index(0, 0).data().toString(), QStringLiteral("5"));
    view.openPage(BatchView::kWorst);
    QVERIFY(view.findChild<WorstPage*>()->toPlainText().contains(QStringLiteral("row 1 of 3")));
    const auto gauges = batchGauges(b.store, 10);
    QCOMPARE(gauges.back().title, QStringLiteral("worst row"));
    QCOMPARE(gauges.back().history, (std::vector<double>{3, 5}));
    QCOMPARE(fetched.size(), 0);  // there is nobody to ask
    // An input of which nothing was kept says so.
    b.selection.select(Selection::ofValue(3));
    view.openPage(BatchView::kContents);
    QVERIFY(view.findChild<ContentsPage*>()->findChild<Details*>()->toPlainText().contains(QStringLiteral("nothing of label")));
  }

  void sumsLeaveWarmUpOut() {
    std::vector<StepPtr> steps;
    for (int i = 0; i < 5; ++i) {
      auto s = std::make_shared<snapshot::StepRecord>();
      s->set_step(i);
      s->set_begin_ns(i * 100);
      s->set_ns(90);
      s->set_warm_up(i == 0 || i == 3);
      if (i != 4) s->add_spans()->set_begin_ns(i * 100);
      steps.push_back(std::move(s));
    }
    const auto numbers = [](const CountedSteps& counted) {
      std::vector<std::int64_t> all;
      for (const StepPtr& s : counted.steps) all.push_back(s->step());
      return all;
    };
    QCOMPARE(numbers(countedSteps(steps, 10, 0, 0)), (std::vector<std::int64_t>{1, 2}));
    QCOMPARE(countedSteps(steps, 10, 0, 0).warmUp, 2);
    QCOMPARE(numbers(countedSteps(steps, 1, 0, 0)), (std::vector<std::int64_t>{3}));  // nothing else is there
    QCOMPARE(countedSteps(steps, 1, 0, 0).warmUp, 0);
    QCOMPARE(numbers(countedSteps(steps, 10, 150, 350)), (std::vector<std::int64_t>{1, 2}));
    QCOMPARE(numbers(countedSteps(steps, 10, 0, 50)), (std::vector<std::int64_t>{0}));
    QVERIFY(countedSteps({}, 10, 0, 0).steps.empty());
  }

  void valuesFollowTheSteps() {
    Bench b;
    ValueHistoryView view(b.context());
    view.resize(900, 400);
    view.show();
    b.store.setGraph(graph());
    QVERIFY(!view.emptyText().isEmpty());
    for (int i = 0; i < 4; ++i) {
      auto step = std::make_shared<snapshot::StepRecord>(*stepOf(i, 1));
      for (const auto& [kind, norm] : {std::pair("parameter", 10.0), std::pair("gradient", 1.0 + i)}) {
        if (i == 2) continue;
        auto* s = step->add_statistics();
        s->set_kind(kind);
        s->set_of("h.0.weight");
        s->set_value(kind[0] == 'g' ? 13 : 10);
        s->mutable_statistics()->set_norm(norm);
        s->mutable_statistics()->set_count(6);
        s->mutable_statistics()->set_nan(i == 1 && kind[0] == 'g' ? 2 : 0);
      }
      if (i == 0) QCOMPARE(gradientNorm(step->statistics()), 1.0);
      if (i == 1) QVERIFY(std::isnan(gradientNorm(step->statistics())));
      if (i == 2) QVERIFY(gradientNorm(step->statistics()) < 0);
      b.store.addStep(std::move(step));
    }
    QVERIFY(view.emptyText().isEmpty());
    auto* table = view.findChild<RowTableView*>();
    QTRY_COMPARE(table->model()->rowCount(), 2);
    QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(view.series()[0].kind, std::string("gradient"));
    QCOMPARE(view.series()[0].points.size(), std::size_t{3});
    QCOMPARE(table->model()->index(0, 2).data(RowTableModel::kSortRole).toDouble(), 4.0);
    QCOMPARE(table->model()->index(0, 3).data(RowTableModel::kSortRole).toDouble(), 4.0);  // to the first
    QCOMPARE(table->model()->index(0, 4).data(RowTableModel::kSortRole).toDouble(), 0.4);  // to the parameter
    QCOMPARE(table->model()->index(0, 9).data().toString(), QStringLiteral("0 (1)"));      // step 1 had some
    table->setCurrentIndex(table->model()->index(1, 0));
    QCOMPARE(view.shown(), 1);
    QCOMPARE(b.selection.selection().value, 10);
  }

  void aPathMapLeadsNowhereElse() {
    PathMap map;
    map.add({QStringLiteral("/home/them"), QStringLiteral("/data/a")});
    map.add({QStringLiteral("/home/them/lib/"), QStringLiteral("/data/b")});
    QCOMPARE(map.resolve(QStringLiteral("/home/them/x.py")), QStringLiteral("/data/a/x.py"));
    QCOMPARE(map.resolve(QStringLiteral("/home/them/lib/y.py")), QStringLiteral("/data/b/y.py"));
    for (const char* bad : {"/home/themselves/x.py", "/home/them/../../etc/passwd", "/etc/passwd", "x.py", "", "..\\x.py", "/home/them/lib/../x.py"})
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
      return e.prefix + '>' + e.folder + (one.resolve(QString::fromLatin1(recorded)).isEmpty() ? QStringLiteral(" lost") : QString());
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
    b.store.findings().setSource(read[0][0].toString(), {{"import torch", "", "\tx = x + self.bias", "", "return x", "\u202Ehostile"}, {}});
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
    QAbstractItemModelTester tester(const_cast<QAbstractItemModel*>(table->model()), QAbstractItemModelTester::FailureReportingMode::QtTest);
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
    QCOMPARE(view.hiddenTexts(), (QStringList{QStringLiteral("2 hidden by level:debug"), QStringLiteral("1 hidden by OVERFLOW")}));
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

QTEST_MAIN(DataViewsTest)
#include "tst_data_views.moc"
