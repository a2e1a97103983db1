// SPDX-License-Identifier: GPL-3.0-or-later
// The window as a new user walks through it: by mouse and keys, in places where a click was never tried. With
// STEPSCOPE_PICTURES each stop leaves a picture.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTabBar>
#include <QTableView>
#include <QTest>
#include <QToolButton>
#include <set>

#include "app/workbench/sample_list.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/set_up_form.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/graph/graph_view.h"
#include "views/graph/phase_strip.h"

using namespace stepscope;

namespace {

TestModel sample(const QString& name) {
  const QString model = samplePath(name), data = QFileInfo(model).absolutePath() + QStringLiteral("/batches.npz");
  return {name, model, QFileInfo::exists(data) ? data : QString()};
}

// What a person does: moves there and presses. False where the widget cannot be seen or does not answer.
bool click(WindowDriver& w, QWidget* at, QPoint place = {}, Qt::KeyboardModifiers modifiers = {}) {
  if (!at || !at->isVisible() || !at->isEnabled()) return false;
  w.loop().act([&] { QTest::mouseClick(at, Qt::LeftButton, modifiers, place.isNull() ? at->rect().center() : place); });
  return true;
}

// A picture of this very moment.
void snap(WindowDriver& w, const QString& name) {
  if (const QString folder = qEnvironmentVariable("STEPSCOPE_PICTURES"); !folder.isEmpty())
    w->grab().save(folder + '/' + name + QStringLiteral(".png"));
  w.loop().forget();
}

void type(WindowDriver& w, QLineEdit* field, const QString& text) {
  w.loop().act([&] {
    field->setFocus();
    field->selectAll();
    QTest::keyClick(field, Qt::Key_Delete);
    QTest::keyClicks(field, text);
  });
}

template <typename T>
T* find(QWidget* in, const char* id) {
  return in->findChild<T*>(QLatin1String(id));
}

}  // namespace

class WalkTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, qEnvironmentVariable("STEPSCOPE_THEME") == u"dark" ? Theme::kDark : Theme::kLight);
  }

  // The build of another model is cancelled: its set-up is there again, as it was filled in.
  void aBuildThatIsCancelledComesBackToItsSetUp() {
    QString missing;
    const auto large = corpusModel(QStringLiteral("bert_mlm"), &missing);
    if (!large) QSKIP(qPrintable(missing));
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step"), w);
    SetUpDialog* dialog = w.open(large->model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    type(w, find<QLineEdit>(dialog, "set_up_data"), large->data);
    type(w, find<QLineEdit>(dialog, "set_up_accumulate"), QStringLiteral("2"));
    QVERIFY(click(w, find<QPushButton>(dialog, "set_up_build")));
    QVERIFY(w.loop().wait([&] { return w->store().building(); }));
    snap(w, QStringLiteral("cancel-1-building"));
    // As long as it builds: each Esc is for what the worker does then.
    QVERIFY(w.loop().wait([&] {
      if (w->store().building()) QTest::keyClick(&*w, Qt::Key_Escape);
      return !w->store().building();
    }));
    QVERIFY(w.settled());
    if (w->session().built()) {  // before it could be cancelled
      QVERIFY2(!shownSetUp(w), "the set-up of a model that was built");
      return;
    }
    w.picture(QStringLiteral("cancel-2-cancelled"));
    // The set-up is there again as it was filled in, and the graph of the model beside it.
    QVERIFY(!w->session().built() && w->store().graph());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    dialog = shownSetUp(w);
    QVERIFY(dialog);
    QCOMPARE(find<QLineEdit>(dialog, "set_up_data")->text(), large->data);
    QCOMPARE(find<QLineEdit>(dialog, "set_up_accumulate")->text(), QStringLiteral("2"));
    // And it builds; then it is gone.
    QVERIFY(click(w, find<QPushButton>(dialog, "set_up_build")));
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    QVERIFY2(!shownSetUp(w), "the set-up of a model that was built");
    w.picture(QStringLiteral("cancel-3-built"));
    QVERIFY_DONE(w.act("step"), w);
  }

  // Another batch is set while a step is paused: it is built, and what the step was is not shown as the new one's.
  void anotherBatchIsSetWhileAStepIsPaused() {
    WindowDriver w;
    TestModel model = bundledModels()[1];
    model.data.clear();
    QVERIFY_DONE(w.openBuilt(model, {{"dim", "batch=2"}}), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    for (int i = 0; i < 5; ++i) QVERIFY_DONE(w.act("step"), w);
    w.loop().act([&] { w->session().toggleBreakpoint(8); });
    QVERIFY(w.settled());
    const std::int64_t before = w->store().plan()->plan().arena_bytes();
    const std::size_t breaks = w->store().breakpoints().size();
    w.picture(QStringLiteral("batch-1-paused"));
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    SetUpDialog* dialog = shownSetUp(w);
    QVERIFY(dialog);
    type(w, find<QLineEdit>(dialog, "set_up_dim"), QStringLiteral("batch=4"));
    w.picture(QStringLiteral("batch-2-set-up"));
    QVERIFY(click(w, find<QPushButton>(dialog, "set_up_build")));
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    QVERIFY(!shownSetUp(w));
    w.picture(QStringLiteral("batch-3-built"));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY2(w->store().plan()->plan().arena_bytes() > before, "the larger batch needs more");
    QCOMPARE(w->store().breakpoints().size(), breaks);
    for (int i = 0; i < w->store().plan()->size(); ++i)
      QVERIFY2(w->store().timing(i).step < 0 || w->store().ranInThisStep(i), "a time of the batch before");
    // The step that was paused is gone, and no mark of its place stands in the lists.
    QVERIFY(!w->store().position().in_step());
    QCOMPARE(w->selection().currentInstruction(), -1);
    QVERIFY_DONE(w.act("step"), w);
  }

  // Every stop of the slider under the mouse, and with Shift the one to compare with.
  void theSliderTakesClicks() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    auto* graph = static_cast<GraphView*>(w.view(QStringLiteral("graph")));
    auto* strip = graph->findChild<PhaseStrip*>();
    QVERIFY(strip->isVisible());
    std::set<int> seen;
    for (int x = 4; x < strip->width() - 4; x += 3) {
      QVERIFY(click(w, strip, {x, strip->height() / 2}));
      seen.insert(strip->shown());
    }
    QVERIFY2(static_cast<qsizetype>(seen.size()) >= strip->stops().size() - 1,
             qPrintable(QStringLiteral("%1 of %2").arg(seen.size()).arg(strip->stops().size())));
    QVERIFY(w.settled());
    QVERIFY(click(w, strip, {strip->width() - 8, strip->height() / 2}));
    QVERIFY(click(w, strip, {8, strip->height() / 2}, Qt::ShiftModifier));
    QVERIFY(w.loop().wait([&] { return !graph->busy() && strip->base() >= 0; }) && w.settled());
    w.picture(QStringLiteral("slider-1-compared"));
    const int from = strip->base(), to = strip->shown();
    QVERIFY2(from < to, "changes go as the build goes");
    w.loop().act([&] { QTest::keyClick(strip, Qt::Key_Escape); });
    QCOMPARE(strip->base(), -1);
    // In the other order: the same changes.
    QVERIFY(click(w, strip, {8, strip->height() / 2}));
    QVERIFY(click(w, strip, {strip->width() - 8, strip->height() / 2}, Qt::ShiftModifier));
    QVERIFY(w.loop().wait([&] { return !graph->busy() && strip->base() >= 0; }) && w.settled());
    QCOMPARE(strip->base(), from);
    QCOMPARE(strip->shown(), to);
    QVERIFY2(
        graph->headerText().contains(QStringLiteral("changes from %1 to %2").arg(strip->stops()[from], strip->stops()[to])),
        qPrintable(graph->headerText()));
    w.picture(QStringLiteral("slider-2-other-order"));
    // The second one that was chosen is the one that Shift+← moves on.
    w.loop().act([&] { QTest::keyClick(strip, Qt::Key_Left, Qt::ShiftModifier); });
    QCOMPARE(strip->base(), from);
    QCOMPARE(strip->shown(), to - 1);
    w.loop().act([&] { QTest::keyClick(strip, Qt::Key_Escape); });
    QCOMPARE(strip->shown(), from);
    QCOMPARE(strip->base(), -1);
  }

  // From the gauge of padding to what it costs, to the heat, to the row that is worst.
  void paddingIsFoundByTheMouse() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(sample(QStringLiteral("padding"))), w);
    w.loop().act([&] { w->session().train(12); });
    QVERIFY(w.settled());
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.picture(QStringLiteral("padding-1-density"));
    auto* tabs = find<QTabBar>(batch, "quiet_tabs");
    QVERIFY(click(w, tabs, tabs->tabRect(BatchView::kWorst).center()));
    QVERIFY(w.settled());
    w.picture(QStringLiteral("padding-2-worst"));
    QVERIFY(click(w, tabs, tabs->tabRect(BatchView::kContents).center()));
    QVERIFY(w.settled());
    w.picture(QStringLiteral("padding-3-contents"));
    auto* graph = static_cast<GraphView*>(w.view(QStringLiteral("graph")));
    auto* heat = find<QComboBox>(&*w, "graph_heat");
    const int padding = heat->findText(QStringLiteral("padding"), Qt::MatchContains);
    QVERIFY(padding >= 0);
    w.loop().act([&] {
      heat->setCurrentIndex(padding);
      emit heat->activated(padding);
    });
    QVERIFY(w.loop().wait([&] { return !graph->busy(); }) && w.settled());
    w.picture(QStringLiteral("padding-4-heat"));
  }

  // A study is begun and cancelled with its button, and begun again.
  void studiesAreStartedAndCancelledByTheMouse() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(sample(QStringLiteral("padding"))), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    View* view = w.view(QStringLiteral("ledger"));
    auto* button = find<QPushButton>(view, "ledger_measure");
    const auto& ledger = w->store().findings().ledger();
    QVERIFY(click(w, button));
    QVERIFY(ledger.running());
    QCOMPARE(button->text(), QStringLiteral("Cancel"));
    snap(w, QStringLiteral("ledger-1-running"));
    if (ledger.running()) QVERIFY(click(w, button));
    QVERIFY(w.loop().wait([&] { return !ledger.running(); }) && w.settled());
    w.picture(QStringLiteral("ledger-2-cancelled"));
    QVERIFY(click(w, button));
    QVERIFY(w.loop().wait([&] { return !ledger.running(); }, 120'000) && w.settled());
    QVERIFY(ledger.report());
    w.picture(QStringLiteral("ledger-3-measured"));
    // In the low strip at the bottom it is scrolled, not squeezed.
    QVERIFY(view->height() > view->parentWidget()->height());
    QVERIFY2(button->height() >= button->minimumSizeHint().height(), qPrintable(QString::number(button->height())));
    view = w.view(QStringLiteral("bisect"));
    button = find<QPushButton>(view, "bisect_start");
    const auto& bisect = w->store().findings().bisect();
    QVERIFY(click(w, button));
    QVERIFY(bisect.running());
    snap(w, QStringLiteral("bisect-1-running"));
    if (bisect.running()) QVERIFY(click(w, button));
    QVERIFY(w.loop().wait([&] { return !bisect.running(); }, 120'000) && w.settled());
    w.picture(QStringLiteral("bisect-2-cancelled"));
    if (!bisect.report()) QVERIFY2(bisect.problem().isEmpty(), "who cancels it is not told of an error");
    QVERIFY_DONE(w.act("step"), w);
  }

  // Run meets a NaN; its first place is one click away.
  void aNanIsFoundByTheMouse() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(sample(QStringLiteral("nan"))), w);
    QVERIFY(click(w, find<QToolButton>(&*w, "tool_run")));
    QVERIFY(w.loop().wait([&] { return !w->session().running() && w->store().position().breakpoint() != 0; }));
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 40);
    w.picture(QStringLiteral("nan-1-stopped"));
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.shownTensor() && w.shownTensor()->statistics().nan() > 0);
    w.picture(QStringLiteral("nan-2-tensor"));
  }

  // Two runs that part, page by page.
  void everyPageOfCompare() {
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(sample(QStringLiteral("two_runs")).model), w);
    w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });
    QVERIFY(w.loop().wait([&] { return w->store().project().runComparison() != nullptr; }) && w.settled());
    View* compare = w.view(QStringLiteral("compare"));
    auto* bar = find<QTabBar>(compare, "compare_pages");
    for (int i = 0; i < bar->count(); ++i) {
      QVERIFY(click(w, bar, bar->tabRect(i).center()));
      QVERIFY(w.settled());
      w.picture(QStringLiteral("compare-%1").arg(i + 1));
      QVERIFY2(bar->tabRect(i).right() <= bar->width(), "every page is in sight");
    }
  }
};

SS_QT_CLASS(QApplication, WalkTest)
#include "tst_walk.moc"
