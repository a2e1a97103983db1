// SPDX-License-Identifier: GPL-3.0-or-later
// Tensors and .npy files in the window, with the real worker: save, compare, edit, load, keep over steps; the batch; a
// source file.
#include <signal.h>

#include <QComboBox>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QTest>
#include <QToolButton>
#include <cstring>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/source/source_view.h"
#include "views/tensors/tensors_view.h"

using namespace stepscope;

namespace {

void writeArray(const QString& path, const char* type, const QString& shape, const QByteArray& bytes) {
  QByteArray header =
      QStringLiteral("{'descr': '%1', 'fortran_order': False, 'shape': (%2), }").arg(QLatin1String(type), shape).toLatin1();
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write("\x93NUMPY\x01\x00", 8);
  const char length[2] = {static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  file.write(length, 2);
  file.write(header);
  file.write(bytes);
}

// An input of integers, such as labels.
int integersOf(MainWindow& w) {
  for (const auto& v : w.store().graph()->graph().values()) {
    if (v.role() == snapshot::INPUT && v.dtype().starts_with("int") && v.dims_size() > 0) return v.id();
  }
  return -1;
}

// A trained parameter of rank 2 or more.
int parameterOf(MainWindow& w) {
  for (const auto& v : w.store().graph()->graph().values()) {
    if (v.role() == snapshot::INITIALIZER && v.trained() && v.dims_size() >= 2) return v.id();
  }
  return -1;
}

class Driver : public WindowDriver {
 public:
  ElementsPanel* elements() { return (*this)->board().find(QStringLiteral("tensors"))->findChild<ElementsPanel*>(); }
  QTableView* table() { return elements()->findChild<QTableView*>(QStringLiteral("tensor_elements")); }
  // The field in the cell that is edited; nullptr when none is.
  QLineEdit* field() {
    for (auto* found : table()->findChildren<QLineEdit*>(QStringLiteral("element_editor")))
      if (found->isVisible()) return found;
    return nullptr;
  }
  QString cell(int row, int column) { return table()->model()->index(row, column).data(Qt::UserRole).toString(); }
  // What stands above the table, empty when nothing does.
  QString told() {
    const auto* label = elements()->findChild<QLabel*>(QStringLiteral("tensor_problem"));
    return label->isVisible() ? label->text() : QString();
  }
  // Types into a cell as a user does: the first key opens it.
  bool type(int row, int column, const QString& text) {
    loop().act([&] {
      table()->setCurrentIndex(table()->model()->index(row, column));
      table()->setFocus();
      QTest::keyClicks(table(), text.left(1));
    });
    if (!field()) return false;
    // As wide as the number that stood there, which the cell may show shorter, with a factor over the table.
    const QString full = table()->model()->index(row, column).data(Qt::EditRole).toString();
    const int room = field()->parentWidget()->width();
    if (field()->width() < std::min(room, field()->fontMetrics().horizontalAdvance(full))) return false;
    loop().act([&] { QTest::keyClicks(field(), text.mid(1)); });
    return true;
  }
  bool press(Qt::Key key) {
    if (!field()) return false;
    loop().act([&] { QTest::keyClick(field(), key); });
    return settled();
  }
  QString difference() { return elements()->comparison().findChild<Details*>()->toPlainText(); }

  // Chooses `path` in the dialog that stands open.
  bool answer(const char* name, const QString& path) {
    QFileDialog* dialog = nullptr;
    const bool open = loop().wait(
        [&] {
          dialog = (*this)->findChild<QFileDialog*>(QLatin1String(name));
          return dialog && dialog->isVisible();
        },
        5'000);
    if (!open) return false;
    dialog->findChild<QLineEdit*>()->setText(path);
    loop().act([dialog] { QMetaObject::invokeMethod(dialog, "accept"); });
    return loop().wait([dialog] { return !dialog->isVisible(); });
  }
  // From the menu of the shown tensor.
  bool choose(const char* action) {
    auto* more = (*this)->board().find(QStringLiteral("tensors"))->findChild<QToolButton*>(QStringLiteral("tensor_more"));
    loop().act([more] { more->click(); });
    auto* menu = (*this)->findChild<QMenu*>(QStringLiteral("tensor_menu"));
    auto* found = menu ? menu->findChild<QAction*>(QLatin1String(action)) : nullptr;
    for (QAction* a : menu ? menu->actions() : QList<QAction*>()) {
      if (a->objectName() == QLatin1String(action)) found = a;
    }
    if (!found || !found->isEnabled()) return false;
    loop().act([&] {
      menu->close();
      found->trigger();
      emit menu->triggered(found);
    });
    return true;
  }
};

}  // namespace

class ArraysTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void aTensorGoesToAFileIsComparedWithItAndComesBack() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step"), w);
    w.view(QStringLiteral("tensors"));
    const int parameter = parameterOf(*w);
    QVERIFY(parameter >= 0);
    QVERIFY(w.select(Selection::ofValue(parameter)));
    const QString file = folder_.filePath(QStringLiteral("weight.npy"));
    QVERIFY(w.choose("tensor_save"));
    QVERIFY(w.answer("save_dialog", file));
    QVERIFY(w.loop().wait([&] { return QFileInfo(file).size() > 0; }));
    QVERIFY(w.settled());

    QVERIFY(w.choose("tensor_compare"));
    QVERIFY(w.answer("existing_dialog", file));
    QVERIFY(w.settled());
    QVERIFY2(w.difference().contains(QStringLiteral("equal, all")), qPrintable(w.difference()));

    // One element is edited: the page follows, names it and both values, and leads to it.
    std::vector<qint64> last;
    for (const auto d : w.shownTensor()->dims()) last.push_back(d - 1);
    w.loop().act([&] { emit w->wishes().editTensor(parameter, last, 1000, false); });
    QVERIFY(w.settled());
    const auto& found = w->store().findings().tensorComparison();
    QVERIFY2(found.problem.isEmpty(), qPrintable(found.problem));
    QCOMPARE(found.result.differing(), 1);
    QCOMPARE(found.result.a(), 1000.0);
    QCOMPARE(std::vector<qint64>(found.result.worst_index().begin(), found.result.worst_index().end()), last);
    QVERIFY2(w.difference().contains(QStringLiteral("1000")), qPrintable(w.difference()));
    w.loop().act([&] { emit w.elements()->comparison().elementWanted(last); });
    QVERIFY(w.settled());
    const auto* table = w.elements()->findChild<QTableView*>(QStringLiteral("tensor_elements"));
    QCOMPARE(table->currentIndex().data(Qt::UserRole).toString(), QStringLiteral("1000"));

    w.elements()->openPage(ElementsPanel::kCompare);
    QVERIFY(w.choose("tensor_load"));
    QVERIFY(w.answer("existing_dialog", file));
    QVERIFY(w.loop().wait([&] { return w->store().findings().tensorComparison().result.equal_bits(); }));
    QVERIFY(w.settled());
    QVERIFY2(w.difference().contains(QStringLiteral("equal, all")), qPrintable(w.difference()));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY_LOOP(w);
  }

  void anElementIsTypedOverInItsCell() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step"), w);
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.select(Selection::ofValue(parameterOf(*w))));
    const QString before = w.cell(1, 1);
    QVERIFY(!before.isEmpty() && before != QStringLiteral("2.5"));
    QVERIFY(w.type(1, 1, QStringLiteral("2.5")));
    QVERIFY(w.press(Qt::Key_Return));
    QVERIFY(w.loop().wait([&] { return w.cell(1, 1) == QStringLiteral("2.5"); }));
    QVERIFY(w.field() == nullptr);
    QCOMPARE(w.table()->currentIndex(), w.table()->model()->index(1, 1));
    QVERIFY_DONE(w.act("undo"), w);
    QCOMPARE(w.cell(1, 1), before);
    QVERIFY_DONE(w.act("redo"), w);
    QCOMPARE(w.cell(1, 1), QStringLiteral("2.5"));

    QVERIFY(w.type(1, 1, QStringLiteral("9")));
    QVERIFY(w.press(Qt::Key_Escape));
    QVERIFY(w.field() == nullptr);
    QCOMPARE(w.cell(1, 1), QStringLiteral("2.5"));

    // What is no number stays in its cell, with the reason.
    QVERIFY(w.type(1, 1, QStringLiteral("1e")));
    QVERIFY(w.press(Qt::Key_Return));
    QVERIFY(w.field() && w.field()->text() == QStringLiteral("1e"));
    QVERIFY2(w.told().contains(QStringLiteral("'1e'; expected a number")), qPrintable(w.told()));
    QVERIFY(w.press(Qt::Key_Escape));
    QCOMPARE(w.told(), QString());
    QVERIFY_LOOP(w);
  }

  void anElementThatTheValueCannotHoldIsRefusedInItsCell() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step"), w);
    w.view(QStringLiteral("tensors"));
    const int labels = integersOf(*w);
    QVERIFY(labels >= 0 && w.select(Selection::ofValue(labels)));
    const QString before = w.cell(1, 0);
    QVERIFY(!before.isEmpty());
    QVERIFY(w.type(1, 0, QStringLiteral("0.5")));
    QVERIFY(w.press(Qt::Key_Return));
    QVERIFY(w.loop().wait([&] { return w.field() != nullptr; }));
    QCOMPARE(w.field()->text(), QStringLiteral("0.5"));
    QVERIFY2(w.told().contains(QStringLiteral("0.5")), qPrintable(w.told()));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY(!w->actions()["undo"]->isEnabled());
    QVERIFY(w.press(Qt::Key_Escape));
    QCOMPARE(w.cell(1, 0), before);
    QVERIFY_LOOP(w);
  }

  void anEditIsTakenBackOnlyWhereItWasMade() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"lr", "0.1"}}), w);
    QVERIFY_DONE(w.act("step"), w);
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.select(Selection::ofValue(parameterOf(*w))));
    QVERIFY(w.type(0, 0, QStringLiteral("0.25")));
    QVERIFY(w.press(Qt::Key_Return));
    QVERIFY(w.loop().wait([&] { return w.cell(0, 0) == QStringLiteral("0.25"); }));
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY_DONE(w.act("undo"), w);
    QVERIFY(w.select(Selection::ofValue(parameterOf(*w))));  // the step went to what it made
    QVERIFY(w.loop().wait([&] { return w.cell(0, 0) == QStringLiteral("0.25"); }));
    QVERIFY(!w->actions()["undo"]->isEnabled());
    QVERIFY_LOOP(w);
  }

  void elementsOfARecordedProjectAreNotEdited() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    const QString project = w->store().project().projectPath();
    const int parameter = parameterOf(*w);
    Driver reader;
    QVERIFY_DONE(reader.openRecorded(project), reader);
    reader.view(QStringLiteral("tensors"));
    QVERIFY(reader.select(Selection::ofValue(parameter)));
    QCOMPARE(reader.table()->model()->rowCount(), 0);
    QVERIFY(!reader.choose("tensor_fill"));
    QVERIFY_LOOP(reader);
  }

  void anArrayOfAnotherShapeOrTypeIsRefusedWithBoth() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step"), w);
    w.view(QStringLiteral("tensors"));
    const int parameter = parameterOf(*w);
    QVERIFY(w.select(Selection::ofValue(parameter)));
    const std::string bits = w.shownTensor()->data();
    QString shape;
    qint64 elements = 1;
    for (const auto d : w.shownTensor()->dims()) {
      shape += QStringLiteral("%1, ").arg(d);
      elements *= d;
    }
    const QString flat = folder_.filePath(QStringLiteral("flat.npy")),
                  tenths = folder_.filePath(QStringLiteral("tenths.npy")),
                  none = folder_.filePath(QStringLiteral("none.npy"));
    writeArray(flat, "<f4", QStringLiteral("7,"), QByteArray(28, '\0'));
    const double tenth = 0.1;
    QByteArray doubles;
    for (qint64 i = 0; i < elements; ++i) doubles.append(reinterpret_cast<const char*>(&tenth), sizeof tenth);
    writeArray(tenths, "<f8", shape, doubles);
    QFile broken(none);
    QVERIFY(broken.open(QIODevice::WriteOnly) && broken.write("no array at all") > 0);
    broken.close();

    const auto load = [&](const QString& path) {
      w->notice().clear();
      w.loop().act([&] { emit w->wishes().loadTensor(parameter, path); });
      const bool told = w.loop().wait([&] { return w->notice().isProblem() && !w->session().busy(); });
      return told && w.settled() ? w->notice().text() : QStringLiteral("nothing was told");
    };
    QVERIFY2(load(flat).contains(QStringLiteral("found float32[7]; expected float32[")), qPrintable(w->notice().text()));
    QVERIFY2(load(tenths).contains(QStringLiteral("0.1 of type float64; expected float32, which cannot hold it exactly")),
             qPrintable(w->notice().text()));
    QVERIFY2(load(none).contains(QStringLiteral("none.npy")), qPrintable(w->notice().text()));
    QVERIFY2(load(folder_.path()).contains(QStringLiteral("not a file")), qPrintable(w->notice().text()));
    QVERIFY2(load(QStringLiteral("/nowhere/a.npy")).contains(QStringLiteral("not a file")), qPrintable(w->notice().text()));
    w->notice().clear();
    QVERIFY(w.select({}) && w.select(Selection::ofValue(parameter)));
    QVERIFY(w.shownTensor()->data() == bits);

    // Comparing says it on its page, where the numbers would stand. Another type is no reason to refuse.
    w.elements()->openPage(ElementsPanel::kCompare);
    w.loop().act([&] { w.elements()->comparison().compareWithFile(flat); });
    QVERIFY(w.settled());
    QVERIFY2(w.difference().contains(QStringLiteral("found float32[7]; expected float32[")), qPrintable(w.difference()));
    w.loop().act([&] { w.elements()->comparison().compareWithFile(tenths); });
    QVERIFY(w.settled());
    QVERIFY2(w.difference().contains(QStringLiteral("0.1")), qPrintable(w.difference()));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY_LOOP(w);
  }

  void keptContentsAreComparedWithThoseOfAnotherStepAndValue() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"lr", "0.1"}}), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    w.view(QStringLiteral("tensors"));
    const int parameter = parameterOf(*w);
    QVERIFY(w.select(Selection::ofValue(parameter)));
    QVERIFY(w.choose("tensor_keep"));
    QVERIFY(w.settled());
    QCOMPARE(w->store().findings().kept().size(), std::size_t{1});
    QVERIFY2(w.difference().contains(QStringLiteral("equal, all")), qPrintable(w.difference()));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(w.difference().contains(QStringLiteral("different")), qPrintable(w.difference()));
    const double moved = w->store().findings().tensorComparison().result.max_abs();
    QVERIFY(moved > 0 && moved < 10);
    // Back before the step: the same bits again.
    w.loop().act([&] { w->session().rewind(1); });
    QVERIFY(w.settled());
    QVERIFY2(w.difference().contains(QStringLiteral("equal, all")), qPrintable(w.difference()));

    auto* with = w.elements()->findChild<QComboBox*>(QStringLiteral("tensor_compare_with"));
    int other = -1;
    for (int i = 0; i < with->count(); ++i) {
      if (with->itemData(i).toString().startsWith(u"value:")) other = i;
    }
    QVERIFY(other >= 0);
    w.loop().act([&] {
      with->setCurrentIndex(other);
      emit with->activated(other);
    });
    QVERIFY(w.settled());
    QCOMPARE(w->store().findings().tensorComparison().with, with->itemData(other).toString());
    QVERIFY(!w.difference().contains(QStringLiteral("Comparing with")));
    QVERIFY_LOOP(w);
  }

  void aLoadedEditComesBackWithTheWorker() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().runTo(3); });
    QVERIFY(w.settled());
    const int parameter = parameterOf(*w);
    QVERIFY(w.select(Selection::ofValue(parameter)));
    QString shape;
    qint64 elements = 1;
    for (const auto d : w.shownTensor()->dims()) {
      shape += QStringLiteral("%1, ").arg(d);
      elements *= d;
    }
    const QString file = folder_.filePath(QStringLiteral("halves.npy"));
    QByteArray bytes;
    const float half = 0.5F;
    for (qint64 i = 0; i < elements; ++i) bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
    writeArray(file, "<f4", shape, bytes);
    w.loop().act([&] { emit w->wishes().loadTensor(parameter, file); });
    QVERIFY(w.loop().wait(
        [&] { return w.shownTensor() && std::memcmp(w.shownTensor()->data().data(), &half, sizeof half) == 0; }));
    QVERIFY(QFile::remove(file));  // the window has its own
    w.loop().act([&] { w->session().restart(); });
    QVERIFY(w.loop().wait(
        [&] { return w->store().workerState() == WorkerState::kIdle && !w->session().busy() && w.instruction() == 3; }));
    QVERIFY(w.settled());
    QVERIFY(w.select({}) && w.select(Selection::ofValue(parameter)));
    QVERIFY2(std::memcmp(w.shownTensor()->data().data(), &half, sizeof half) == 0, "the edit was lost");
    QVERIFY_LOOP(w);
  }

  void theBatchShowsItsPicturesAndItsWorstRow() {
    Driver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([batch] { batch->openPage(BatchView::kContents); });
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([batch] { return batch->findChild<PictureGrid*>()->pictures() == 32; }, 5'000));
    w.loop().act([batch] { batch->openPage(BatchView::kWorst); });
    QVERIFY(w.settled());
    const auto& losses = w->store().findings().rowLosses();
    QVERIFY(losses != nullptr);
    const int instruction = losses->instruction();
    QVERIFY(instruction >= 0);
    w.loop().act([&] { w->session().runTo(instruction + 1); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().findings().rowLosses()->values_size(), 32);
    QVERIFY_LOOP(w);
  }

  void aSourceFileIsReadWhereThePathMapLeads() {
    QString missing;
    const auto model = corpusModel(QStringLiteral("gpt2_dynamo"), &missing);
    if (!model) QSKIP(qPrintable(missing));
    Driver w;
    QVERIFY_DONE(w.openBuilt(*model), w);
    auto* source = static_cast<SourceView*>(w.view(QStringLiteral("source")));
    auto* file = source->findChild<QComboBox*>(QStringLiteral("source_file"));
    QVERIFY(w.loop().wait([file] { return file->count() > 0; }, 5'000));
    const QString recorded = file->currentData().toString(), name = recorded.section('/', -1);
    QFile local(folder_.filePath(name));
    QVERIFY(local.open(QIODevice::WriteOnly));
    for (int i = 1; i <= 3000; ++i) local.write(QStringLiteral("line_%1()\n").arg(i).toUtf8());
    local.close();
    w.loop().act([&] { source->locate(local.fileName()); });
    const auto* table = source->findChild<QTableView*>(QStringLiteral("source_table"));
    QVERIFY(w.loop().wait([table] { return table->model()->rowCount() == 3000; }, 5'000));
    QCOMPARE(table->model()->index(1233, 4).data().toString(), QStringLiteral("line_1234()"));
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(WatchedApplication, ArraysTest)
#include "tst_arrays.moc"
