// SPDX-License-Identifier: GPL-3.0-or-later
// Small things that a window has to get right: the cursor in sight, what belongs to a model, what a proof compared, clicks
// and keys in lists.
#include <QAbstractItemView>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSettings>
#include <QStandardPaths>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/instructions/instruction_model.h"

using namespace stepscope;

namespace {

bool breaksOn(WindowDriver& w, int condition) {
  const auto& all = w->store().breakpoints();
  return std::any_of(all.begin(), all.end(), [&](const auto& b) { return b.condition_case() == condition && b.enabled(); });
}

}  // namespace

class SmallThingsTest : public QObject {
  Q_OBJECT

  static const snapshot::Option* optionOf(WindowDriver& w, const char* name) {
    for (const auto& o : w->store().options())
      if (o.name() == name) return &o;
    return nullptr;
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // Whatever moves the cursor, by however much: the list shows it.
  void theListShowsTheCursorAfterAPhase() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    const auto* list = w.view(QStringLiteral("instructions"))->findChild<QAbstractItemView*>();
    const auto shown = [&] {
      for (int row = 0; row < list->model()->rowCount(); ++row) {
        const QModelIndex at = list->model()->index(row, 0);
        if (at.data(InstructionModel::kKindRole).toInt() == InstructionModel::kInstruction &&
            at.data(InstructionModel::kIndexRole).toInt() == w.instruction())
          return list->viewport()->rect().contains(list->visualRect(at));
      }
      return false;
    };
    QVERIFY_DONE(w.act("step"), w);
    for (const char* move : {"step_phase", "step_phase", "step_phase_back", "step_phase_back", "step_phase"}) {
      QVERIFY_DONE(w.act(move), w);
      QVERIFY2(w.loop().wait(shown), qPrintable(QStringLiteral("%1 to %2").arg(QLatin1String(move)).arg(w.instruction())));
    }
  }

  // Of an If whose other branch ran: the list says so instead of a time, and nothing is offered that would not help.
  void aBranchThatIsNotTakenIsSaid() {
    QString missing;
    const auto model = corpusModel(QStringLiteral("branching"), &missing);
    if (!model) QSKIP(qPrintable(missing));
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(*model, {{"loss", "loss"}}), w);
    QVERIFY_DONE(w.act("step_phase"), w);
    const auto* list = w.view(QStringLiteral("instructions"))->findChild<QAbstractItemView*>();
    const auto* model_ = qobject_cast<const InstructionModel*>(list->model());
    QVERIFY(model_);
    int left = -1;
    for (int i = 0; i < w.instruction(); ++i) {
      const auto line = model_->line(model_->rowOf(i));
      QVERIFY2(line.time != QStringLiteral("0 ns"), qPrintable(line.op));
      if (line.left && w->store().plan()->instruction(i)->outputs_size() > 0) left = i;
    }
    QVERIFY(left >= 0);
    const auto line = model_->line(model_->rowOf(left));
    QCOMPARE(line.time, QStringLiteral("not taken"));
    QVERIFY(!line.fresh);
    const int value = w->store().plan()->instruction(left)->outputs(0).value();
    QVERIFY(w.select(Selection::ofValue(value)));
    QVERIFY(w.shownTensor() && !w.shownTensor()->unavailable().empty());
    QStringList said;
    for (const auto* label : w.view(QStringLiteral("tensors"))->findChildren<QLabel*>())
      if (label->isVisible()) said << label->text();
    for (const auto* text : w.view(QStringLiteral("tensors"))->findChildren<QTextBrowser*>())
      if (text->isVisible()) said << text->toPlainText();
    const QString all = said.join('\n');
    QVERIFY2(all.contains(QStringLiteral("branch of the If was not taken")), qPrintable(all));
    QVERIFY2(!all.contains(QStringLiteral("Pin keeps it")), qPrintable(all));
    QVERIFY2(!all.contains(QStringLiteral("given to another value")), qPrintable(all));
    w.picture(QStringLiteral("not-taken"));
  }

  // In the middle of a step the values that are in memory there are compared, else what the whole step leaves behind; the
  // proof says which.
  void aProofSaysWhereItCompared() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    const auto proved = [&](const char* value) {
      w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("pass.fuse_batch_norm"), QLatin1String(value)); });
      return w.loop().wait([&] {
        const auto& proof = w->store().findings().optionProof();
        return proof && proof->change().ends_with(value);
      }) && w.settled();
    };
    const auto text = [&] {
      QString role;
      return w->store().findings().optionProofText(&role);
    };
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { w->session().runTo(7); });
    QVERIFY(w.settled());
    QVERIFY_DONE(proved("off"), w);
    QVERIFY(w->store().position().in_step() && w.instruction() > 0);
    QCOMPARE(w->store().findings().optionProof()->instruction(), w.instruction());
    QVERIFY2(text().contains(QStringLiteral("in memory before instruction %1 of step 1").arg(w.instruction())),
             qPrintable(text()));
    const auto* shown = w.view(QStringLiteral("options"))->findChild<QLabel*>(QStringLiteral("options_proof"));
    QVERIFY2(shown && shown->isVisible() && shown->text() == text(), "also where the list is opened after the change");
    for (const char* name : {"recompute", "streams", "trials"}) {
      const auto* proof = w.view(QLatin1String(name))->findChild<QLabel*>(QLatin1String(name) + QStringLiteral("_proof"));
      QVERIFY2(proof && !proof->isHidden() && proof->text() == text(), name);
    }
    QVERIFY(w.settled());
    w.picture(QStringLiteral("proof-inside"));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(proved("on"), w);
    QCOMPARE(w->store().findings().optionProof()->instruction(), 0);
    QVERIFY2(text().contains(QStringLiteral("after the whole of step 2, run under both plans")), qPrintable(text()));
    w.picture(QStringLiteral("proof-whole"));
  }

  // In a micro step that only accumulates the updates are passed by, which is said; the one that updates has their times.
  void anUpdateThatIsLeftOutIsSaid() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"accumulate", "2"}}), w);
    const auto* list = w.view(QStringLiteral("instructions"))->findChild<QAbstractItemView*>();
    const auto* model = qobject_cast<const InstructionModel*>(list->model());
    QVERIFY(model);
    const auto said = [&] {
      std::set<QString> times;
      for (int i = 0; i < w->store().plan()->size(); ++i)
        if (w->store().plan()->instruction(i)->update_entry()) times.insert(model->line(model->rowOf(i)).time);
      return times;
    };
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(said(), std::set<QString>{QStringLiteral("no update")});
    w.picture(QStringLiteral("no-update"));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(!said().empty() && !said().contains(QStringLiteral("no update")));
  }

  // Another model begins with its own, or with none; the first one has its own again.
  void heatFiltersAndBreaksBelongToAModel() {
    using B = snapshot::Breakpoint;
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY(w.view(QStringLiteral("graph")));
    auto* heat = w->findChild<QComboBox*>(QStringLiteral("graph_heat"));  // it stands in the header of the panel
    auto* filter = w.view(QStringLiteral("instructions"))->findChild<QLineEdit*>();
    QVERIFY(heat);
    QVERIFY(filter);
    QVERIFY(w.loop().wait([&] { return breaksOn(w, B::kNan) && breaksOn(w, B::kNewInf); }));
    w.loop().act([&] {
      heat->setCurrentIndex(1);
      filter->setText(QStringLiteral("op:Gemm"));
    });
    std::vector<B> nanAlone = w->store().breakpoints();
    std::erase_if(nanAlone, [](const B& b) { return b.condition_case() != B::kNan; });
    w.loop().act([&] { w->session().setBreakpoints(nanAlone); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    QCOMPARE(heat->currentIndex(), 0);
    QCOMPARE(filter->text(), QString());
    QVERIFY2(breaksOn(w, B::kNan) && breaksOn(w, B::kNewInf), "another model breaks on both");
    w.loop().act([&] { filter->setText(QStringLiteral("op:MatMul")); });
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QCOMPARE(heat->currentIndex(), 1);
    QCOMPARE(filter->text(), QStringLiteral("op:Gemm"));
    QVERIFY(breaksOn(w, B::kNan) && !breaksOn(w, B::kNewInf));
    // A new set-up of the same model leaves all of it.
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    QCOMPARE(filter->text(), QStringLiteral("op:Gemm"));
    QVERIFY(!breaksOn(w, B::kNewInf));
  }

  // A filter ends with the window; rules that hide records of the log, and a query, do not.
  void aFilterDoesNotOutliveTheWindow() {
    QStandardPaths::setTestModeEnabled(true);
    QTemporaryDir place;
    QSettings::setPath(QSettings::defaultFormat(), QSettings::UserScope, place.path());
    const auto filterOf = [](MainWindow& window, const char* view) {
      return window.board().show(QLatin1String(view))->findChild<QLineEdit*>();
    };
    const QString query = QStringLiteral("SELECT 7"), words = QStringLiteral("fuse_batch");
    {
      MainWindow window(true);
      window.show();
      for (const char* view : {"startup_table", "options", "instructions", "log"}) filterOf(window, view)->setText(words);
      window.board().show(QStringLiteral("sql"))->restoreState(query);
      window.leave();
    }
    MainWindow window(true);
    window.show();
    for (const char* view : {"startup_table", "options", "instructions", "log"})
      QVERIFY2(filterOf(window, view)->text().isEmpty(), view);
    QCOMPARE(window.board().show(QStringLiteral("sql"))->saveState(), query);
  }

  // Tab leaves the table of values: its cells are reached by the arrows.
  void tabLeavesTheTableOfValues() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QApplication::setActiveWindow(&*w);
    for (const auto& v : w->store().graph()->graph().values())
      if (v.name() == "stages.1.conv.weight") QVERIFY(w.select(Selection::ofValue(v.id())));
    auto* table = w.view(QStringLiteral("tensors"))->findChild<QTableView*>(QStringLiteral("tensor_elements"));
    QVERIFY(w.loop().wait([&] { return table->isVisible() && table->model()->rowCount() > 1; }));
    table->setFocus();
    table->setCurrentIndex(table->model()->index(0, 0));
    w.loop().act([&] { QTest::keyClick(table, Qt::Key_Tab); });
    QVERIFY(QApplication::focusWidget() && !table->hasFocus());
    QCOMPARE(table->currentIndex(), table->model()->index(0, 0));
    table->setFocus();
    w.loop().act([&] { QTest::keyClick(table, Qt::Key_Right); });
    QCOMPARE(table->currentIndex(), table->model()->index(0, 1));
  }

  // A pass that looks at the file says the same of it however far the training is.
  void aPassFindsInTheFileWhatItFoundBefore() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    const auto found = [&] { return QString::fromStdString(optionOf(w, "pass.traced_statistics")->effect()); };
    const QString first = found();
    QVERIFY2(first.contains(QStringLiteral("0 matches")), qPrintable(first));
    w.loop().act([&] { w->session().train(5); });
    QVERIFY(w.settled());
    QVERIFY_DONE(w.act("step"), w);
    for (const char* value : {"off", "on"}) {
      w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("pass.fuse_batch_norm"), QLatin1String(value)); });
      QVERIFY(w.settled());
      QCOMPARE(found(), first);
    }
  }

  // The mouse chooses a line of a list as the keys do: what is clicked is what every view shows.
  void aClickChoosesAnInstruction() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    auto* list = w.view(QStringLiteral("instructions"))->findChild<QAbstractItemView*>(QStringLiteral("instruction_list"));
    const auto click = [&](int instruction) {
      for (int r = 0; r < list->model()->rowCount(); ++r) {
        const QModelIndex at = list->model()->index(r, 0);
        if (at.data(InstructionModel::kKindRole).toInt() != InstructionModel::kInstruction ||
            at.data(InstructionModel::kIndexRole).toInt() != instruction)
          continue;
        w.loop().act([&] { QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, list->visualRect(at).center()); });
        return;
      }
    };
    for (const int instruction : {3, 7}) {
      click(instruction);
      QCOMPARE(w->selection().selection().instruction, instruction);
    }
  }
};

SS_QT_CLASS(QApplication, SmallThingsTest)
#include "tst_small_things.moc"
