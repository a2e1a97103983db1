// SPDX-License-Identifier: GPL-3.0-or-later
// Ways that a person takes through the window: stepping and reading what a step made, reports that tell what was done by
// hand.
#include <QTest>
#include <algorithm>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/tensors/value_facts.h"

using namespace stepscope;

class WaysTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void aStepShowsTheValuesItMade() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    const auto selected = [&w] { return w->selection().selection().instruction; };
    const auto hasContents = [&w] {
      return w.loop().wait(
          [&w] { return w.shownTensor() && w.shownTensor()->current() && w.shownTensor()->unavailable().empty(); }, 10'000);
    };
    w.view(QStringLiteral("tensors"));
    for (const char* move : {"step", "step", "step", "step_back", "step_phase", "step_phase_back", "step"}) {
      QVERIFY_DONE(w.act(move), w);
      const int next = w.instruction();
      QVERIFY2(
          selected() == std::max(0, next - 1),
          qPrintable(QStringLiteral("%1: %2 is selected, %3 is next").arg(QLatin1String(move)).arg(selected()).arg(next)));
      QVERIFY2(hasContents(), move);
      QCOMPARE(w->selection().currentInstruction(), next);
    }
    // Where the stop was asked for, the instruction that waits there, with what it reads.
    w.loop().act([&] { w->session().toggleBreakpoint(12); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("run"), w);
    QCOMPARE(w.instruction(), 12);
    QCOMPARE(selected(), 12);
    const auto& inputs = w->store().graph()->node(w->selection().selection().node)->inputs();
    QVERIFY(std::find(inputs.begin(), inputs.end(), w->selection().selection().value) != inputs.end());
    QVERIFY(hasContents());
    // And what somebody looks at stays: they run to it, or past it, for its values.
    QVERIFY(w.select(Selection::ofInstruction(20)));
    const Selection looked = w->selection().selection();
    QVERIFY_DONE(w.act("run_here"), w);
    QCOMPARE(w.instruction(), 20);
    QVERIFY(w->selection().selection() == looked);
    w.loop().act([&] { emit w->wishes().runTo(21); });
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), 21);
    QVERIFY(w->selection().selection() == looked);
    QVERIFY(hasContents());
    QVERIFY_LOOP(w);
  }

  void aReportTellsWhatWasDoneByHand() {
    QTemporaryDir folder;
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().toggleBreakpoint(3); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("run"), w);
    QVERIFY_DONE(w.act("step"), w);
    const int value = w->selection().selection().value;
    const QString name = QString::fromStdString(w->store().graph()->value(value)->name()).toHtmlEscaped();
    const std::vector<qint64> first(static_cast<std::size_t>(w->store().graph()->value(value)->dims_size()), 0);
    w.loop().act([&] { w->session().editElement(value, first, 2.5, 0); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(w.recorded());
    for (const char* ending : {"html", "json", "csv"}) {
      const QString path = folder.filePath(QStringLiteral("r.") + QLatin1String(ending));
      w.loop().act([&] { w->recording().queries().report(path); });
      QVERIFY(w.recorded());
      QVERIFY2(QFileInfo(path).size() > 0, ending);
    }
    const QString page = textOf(folder.filePath(QStringLiteral("r.html")));
    for (const QString& told : {QStringLiteral("set to 2.5"), name, QStringLiteral("stopped 2 times (breakpoint"),
                                QStringLiteral("breakpoint"), QStringLiteral(">stopped</span>")})
      QVERIFY2(page.contains(told), qPrintable(told));
    QCOMPARE(page.count(QStringLiteral(">stopped</span>")), 1);  // the steps before and after ran through
    const QString json = textOf(folder.filePath(QStringLiteral("r.json")));
    QVERIFY(json.contains(QStringLiteral("\"edited\"")) && json.contains(QStringLiteral("\"stopped\"")));
  }

  // Whatever took the memory of a value, a pin is one click away where the text says that it would have kept it.
  void whereAPinWouldHaveHelpedOnePins() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const int end = w->store().plan()->size();
    w.loop().act([&] { w->session().runTo(end); });
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), end);
    View* view = w.view(QStringLiteral("tensors"));
    auto* facts = view->findChild<ValueFacts*>();
    QVERIFY(facts);
    int reused = 0;
    for (const auto& value : w->store().graph()->graph().values()) {
      const int buffer = w->store().plan()->bufferOfValue(value.id());
      if (value.role() != snapshot::NODE_OUTPUT || buffer < 0) continue;
      w.loop().act([&] { w->session().fetchTensor(value.id(), {}, {}); });
      QVERIFY(w.settled());
      const TensorPtr tensor = w->store().tensor(value.id());
      if (!tensor || tensor->unavailable().find("pin it") == std::string::npos) continue;
      ++reused;
      QVERIFY(w.select(Selection::ofValue(value.id())));
      QVERIFY2(
          facts->toPlainText().contains(QStringLiteral("Pin keeps it")),
          qPrintable(QString::fromStdString(value.name() + ": " + tensor->unavailable()) + '\n' + facts->toPlainText()));
    }
    QVERIFY(reused > 10);
  }

  // An edit that was undone, by going back behind it or by undo, did not count.
  void aReportTellsNothingOfAnEditThatWasUndone() {
    QTemporaryDir folder;
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const auto edits = [&] {
      QVERIFY_DONE(w.act("step_whole"), w);
      QVERIFY(w.recorded());
      w.loop().act([&] { w->recording().queries().report(folder.filePath(QStringLiteral("r.json"))); });
      QVERIFY(w.recorded());
    };
    const auto told = [&] { return textOf(folder.filePath(QStringLiteral("r.json"))).count(QStringLiteral(" set to ")); };
    int value = -1;
    std::vector<qint64> first;
    const auto edit = [&](double number, double before) {
      w.loop().act([&] { w->session().editElement(value, first, number, before); });
      QVERIFY(w.settled());
    };
    for (int i = 0; i < 4; ++i) QVERIFY_DONE(w.act("step"), w);
    value = w->selection().selection().value;
    first.assign(static_cast<std::size_t>(w->store().graph()->value(value)->dims_size()), 0);
    edit(2.5, 0.125);
    QVERIFY(w->session().edited());
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY_DONE(w.act("step_back"), w);
    QVERIFY2(w->session().edited(), "it was made here");
    QVERIFY_DONE(w.act("step_back"), w);
    QVERIFY2(!w->session().edited(), "it was made behind this place");
    edits();
    QCOMPARE(told(), 0);
    // With undo; redo does it again. The one that came between stays what it is.
    for (int i = 0; i < 4; ++i) QVERIFY_DONE(w.act("step"), w);
    edit(2.5, 0.125);
    edit(3.5, 2.5);
    QVERIFY_DONE(w.act("undo"), w);
    QVERIFY_DONE(w.act("undo"), w);
    edits();
    QCOMPARE(told(), 0);
    for (int i = 0; i < 4; ++i) QVERIFY_DONE(w.act("step"), w);
    edit(2.5, 0.125);
    QVERIFY_DONE(w.act("undo"), w);
    QVERIFY_DONE(w.act("redo"), w);
    edits();
    QCOMPARE(told(), 1);
  }
};

SS_QT_CLASS(QApplication, WaysTest)
#include "tst_ways.moc"
