// SPDX-License-Identifier: GPL-3.0-or-later
// Small things that a window has to get right: what belongs to a model, switches, what waits for the next step, settings
// that are made of the options' metadata.
#include <QAbstractItemView>
#include <QComboBox>
#include <QCompleter>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTableView>
#include <QTest>
#include <QTextBrowser>
#include <optional>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"
#include "views/instructions/instruction_model.h"
#include "views/open_dialog/more_settings.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

bool breaksOn(WindowDriver& w, int condition) {
  const auto& all = w->store().breakpoints();
  return std::any_of(all.begin(), all.end(), [&](const auto& b) { return b.condition_case() == condition && b.enabled(); });
}

const snapshot::Option* optionOf(WindowDriver& w, const char* name) {
  for (const auto& o : w->store().options())
    if (o.name() == name) return &o;
  return nullptr;
}

}  // namespace

class SmallThingsTest : public QObject {
  Q_OBJECT

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

  // One click turns a switch; a double click is no second turn; what the next step takes says so until then.
  void aClickTurnsASwitch() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step"), w);
    View* view = w.view(QStringLiteral("options"));
    auto* table = view->findChild<QTableView*>();
    const auto rowOf = [&](const char* name) {
      for (int r = 0; r < table->model()->rowCount(); ++r)
        if (table->model()->index(r, 0).data().toString() == QLatin1String(name)) return r;
      return -1;
    };
    QVERIFY(w.loop().wait([&] { return rowOf("memory.inplace") >= 0; }));
    const auto place = [&](const char* name, int column) {
      const QModelIndex at = table->model()->index(rowOf(name), column);
      table->scrollTo(at);
      return table->visualRect(at).center();
    };
    w.loop().act([&] { QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, place("memory.inplace", 1)); });
    QVERIFY(w.settled());
    QCOMPARE(QString::fromStdString(optionOf(w, "memory.inplace")->value()), QStringLiteral("off"));
    QVERIFY(w.loop().wait([&] { return rowOf("memory.inplace") >= 0; }));
    const QPoint at = place("memory.inplace", 1);
    w.loop().act([&] {
      QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, at);
      QTest::mouseDClick(table->viewport(), Qt::LeftButton, {}, at);
    });
    QVERIFY(w.settled());
    QCOMPARE(QString::fromStdString(optionOf(w, "memory.inplace")->value()), QStringLiteral("on"));
    // A click on another column turns nothing.
    w.loop().act([&] { QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, place("memory.inplace", 0)); });
    QVERIFY(w.settled());
    QCOMPARE(QString::fromStdString(optionOf(w, "memory.inplace")->value()), QStringLiteral("on"));
    w.picture(QStringLiteral("switches"));

    // In the middle of a step another rate has to wait.
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("lr"), QStringLiteral("0.5")); });
    QVERIFY(w.settled());
    QVERIFY2(optionOf(w, "lr")->effect().find("pending") != std::string::npos, optionOf(w, "lr")->effect().c_str());
    const auto shown = [&] { return table->model()->index(rowOf("lr"), 4).data().toString(); };
    QVERIFY(w.loop().wait([&] { return shown().contains(QStringLiteral("pending")); }));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.loop().wait([&] { return !shown().contains(QStringLiteral("pending")); }));
    QCOMPARE(QString::fromStdString(optionOf(w, "lr")->value()), QStringLiteral("0.5"));
  }

  // Betas, schedule, groups and padding: fields made of the metadata; what is refused stands below its field.
  void theSetUpHasEverySettingOfTheTraining() {
    WindowDriver w({1600, 1000});
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QVERIFY(w.loop().wait([&] { return dialog->findChild<MoreSettings*>() != nullptr; }));
    const auto line = [](SetUpDialog& form, const char* name) {
      return form.findChild<QLineEdit*>(QStringLiteral("set_up_more_") + QLatin1String(name));
    };
    for (const char* name : {"betas", "eps", "warmup-steps", "total-steps", "group", "pad", "padding", "loss-scale"}) {
      QVERIFY2(line(*dialog, name), name);
      QVERIFY2(!line(*dialog, name)->toolTip().isEmpty(), name);
    }
    auto* schedule = dialog->findChild<QComboBox*>(QStringLiteral("set_up_more_lr-schedule"));
    QVERIFY(schedule && schedule->currentText() == u"constant" && schedule->findText(QStringLiteral("cosine")) > 0);
    QVERIFY2(!dialog->findChild<QWidget*>(QStringLiteral("set_up_more_lr")), "it has its field on the first page");
    const auto built = [&] { return w->session().built() && !w->session().busy(); };
    const auto press = [&](SetUpDialog* form) {
      w.loop().act([form] { form->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    };
    // Nothing is told that nobody chose.
    const snapshot::Configure proposed = dialog->configuration();
    for (const auto& s : proposed.settings()) QVERIFY2(s.name() != "betas" && s.name() != "eps", s.name().c_str());
    line(*dialog, "betas")->setText(QStringLiteral("0.9"));
    press(dialog);
    SetUpDialog* again = nullptr;
    QVERIFY(w.loop().wait([&] {
      for (auto* d : w->findChildren<SetUpDialog*>())
        if (d->isVisible() && d->findChild<QLabel*>(QStringLiteral("set_up_refusal"))) again = d;
      return again != nullptr;
    }));
    QVERIFY(w.settled());
    auto* reason = again->findChild<QLabel*>(QStringLiteral("set_up_refusal"));
    QVERIFY2(reason->isVisible() && reason->text().contains(QStringLiteral("betas")), qPrintable(reason->text()));
    w.picture(QStringLiteral("more-refused"));
    again->findChild<QComboBox*>(QStringLiteral("set_up_more_lr-schedule"))->setCurrentText(QStringLiteral("cosine"));
    line(*again, "total-steps")->setText(QStringLiteral("10"));
    line(*again, "betas")->setText(QStringLiteral("0.8,0.95"));
    line(*again, "group")->setText(QStringLiteral("wte:lr=0.01; bias:weight_decay=0"));
    press(again);
    QVERIFY2(w.loop().wait(built), qPrintable(w->notice().text()));
    QVERIFY(w.settled());
    QCOMPARE(QString::fromStdString(optionOf(w, "lr-schedule")->value()), QStringLiteral("cosine"));
    QCOMPARE(QString::fromStdString(optionOf(w, "betas")->value()), QStringLiteral("0.8,0.95"));
    int groups = 0;
    const snapshot::Configure used = w->session().configuration();
    for (const auto& s : used.settings()) groups += s.name() == "group";
    QCOMPARE(groups, 2);
    // And they are there again.
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    SetUpDialog* third = nullptr;
    QVERIFY(w.loop().wait([&] {
      for (auto* d : w->findChildren<SetUpDialog*>())
        if (d->isVisible() && d->findChild<MoreSettings*>()) third = d;
      return third != nullptr;
    }));
    QCOMPARE(line(*third, "group")->text(), QStringLiteral("wte:lr=0.01; bias:weight_decay=0"));
    QCOMPARE(line(*third, "betas")->text(), QStringLiteral("0.8,0.95"));
  }

 private slots:
  // A breakpoint in the list is switched and removed by keys.
  void theListOfBreakpointsIsWorkedByKeys() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    snapshot::Breakpoint place;
    place.set_enabled(true);
    place.set_instruction(6);
    w.loop().act([&] { emit w->wishes().addBreakpoint(place); });
    const auto enabled = [&]() -> std::optional<bool> {
      for (const auto& b : w->store().breakpoints())
        if (b.condition_case() == snapshot::Breakpoint::kInstruction) return b.enabled();
      return std::nullopt;
    };
    QVERIFY(w.loop().wait([&] { return enabled().has_value(); }));
    auto* table = w.view(QStringLiteral("breakpoints"))->findChild<QTableView*>();
    QVERIFY(table);
    const auto select = [&] {
      for (int row = 0; row < table->model()->rowCount(); ++row) {
        if (!table->model()->index(row, 2).data().toString().contains(QStringLiteral("before 6"))) continue;
        table->selectRow(row);
        return true;
      }
      return false;
    };
    QVERIFY(w.loop().wait(select));
    table->setFocus();
    QTest::keyClick(table, Qt::Key_Space);
    QVERIFY2(w.loop().wait([&] { return enabled() == false; }, 5'000), qPrintable(QStringLiteral("row %1 of %2, focus %3")
                                                                                      .arg(table->currentIndex().row())
                                                                                      .arg(table->model()->rowCount())
                                                                                      .arg(table->hasFocus())));
    QTest::keyClick(table, Qt::Key_Space);
    QVERIFY(w.loop().wait([&] { return enabled() == true; }));
    QTest::keyClick(table, Qt::Key_Delete);
    QVERIFY(w.loop().wait([&] { return !enabled().has_value(); }));
  }

  // What an option is measured in says the option, not its name.
  void aSizeIsSaidWithItsUnit() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    const auto* note = w->findChild<QLabel*>(QStringLiteral("status_note"));
    for (const char* name : {"ring.bytes", "memory.limit"}) {
      w.loop().act([&] { emit w->wishes().setOption(QLatin1String(name), QStringLiteral("134217728")); });
      QVERIFY2(w.loop().wait([&] { return note->toolTip() == QLatin1String(name) + QStringLiteral(" = 128 MiB"); }, 10'000),
               qPrintable(note->toolTip()));
      QVERIFY(w.settled());
    }
  }

  // A run that a condition stopped shows the value that it was about, whichever output of its instruction that is.
  void aConditionThatStoppedShowsItsValue() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"optimizer", "adam"}}), w);
    snapshot::Breakpoint condition;
    condition.set_enabled(true);
    for (const char* name : {"head.weight.next", "head.weight"}) {
      condition.set_predicate(std::string(name) + " max > -1000");
      w.loop().act([&] {
        w->session().setBreakpoints({condition});
        w->session().run(false);
      });
      QVERIFY(w.loop().wait([&] { return w->store().position().breakpoint() != 0; }) && w.settled());
      const auto* made = w->store().plan()->instruction(w.instruction() - 1);
      QVERIFY(made && made->outputs_size() > 1);
      const int shown = w->selection().selection().value;
      QCOMPARE(w->store().graph()->value(shown)->name(), std::string("head.weight.next"));
      QVERIFY(shown != made->outputs(0).value());
      const auto lists = w.view(QStringLiteral("tensors"))->findChildren<QComboBox*>();
      QVERIFY(std::ranges::any_of(
          lists, [](const auto* list) { return list->currentText().endsWith(QStringLiteral("head.weight.next")); }));
      w.picture(QStringLiteral("condition-stopped"));
      QVERIFY_DONE(w.act("step_whole"), w);
    }
  }

  // What the worker refuses stays in its field, with the reason below it, until something is taken; the list has the numbers
  // that messages use, and what can be typed is offered.
  void aRefusedConditionStaysToBeMended() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    View* view = w.view(QStringLiteral("breakpoints"));
    auto* kind = view->findChild<QComboBox*>(QStringLiteral("breakpoint_kind"));
    auto* text = view->findChild<QLineEdit*>(QStringLiteral("breakpoint_text"));
    const auto* problem = view->findChild<QLabel*>(QStringLiteral("breakpoint_problem"));
    const auto enter = [&](const QString& condition) {
      w.loop().act([&] {
        kind->setCurrentIndex(1);
        text->setText(condition);
        emit text->returnPressed();
      });
      return w.settled();
    };
    const std::size_t before = w->store().breakpoints().size();
    for (const char* wrong : {"max(abs(head.weight)) > 0.5", "head.weight foo > 0.5", "head.weight max > much"}) {
      QVERIFY(enter(QLatin1String(wrong)));
      QVERIFY(w.loop().wait([&] { return problem->isVisible(); }));
      QCOMPARE(text->text(), QLatin1String(wrong));
      QVERIFY2(problem->text().contains(QStringLiteral("expected")), qPrintable(problem->text()));
      QCOMPARE(w->store().breakpoints().size(), before);
    }
    w.picture(QStringLiteral("condition-refused"));
    QVERIFY(enter(QStringLiteral("head.weight max > 5")));
    QVERIFY(w.loop().wait([&] { return w->store().breakpoints().size() == before + 1; }) && w.settled());
    QVERIFY(!problem->isVisible() && text->text().isEmpty());
    const int number = w->store().breakpoints().back().id();
    const QStringList cells = cellsOf(*view);
    const qsizetype row = cells.indexOf(QStringLiteral("when head.weight max > 5"));
    QVERIFY2(row >= 2 && cells[row - 2] == QString::number(number), qPrintable(cells.join('|')));

    // The next word, and every field that is offered is one that the worker takes.
    const auto offered = [&](const QString& typed) {
      w.loop().act([&] {
        text->clear();
        text->setFocus();
        QTest::keyClicks(text, typed);
      });
      const auto* words = text->completer()->completionModel();
      QStringList all;
      for (int i = 0; i < words->rowCount(); ++i) all << words->index(i, 0).data().toString();
      w.loop().act([&] { text->completer()->popup()->hide(); });
      return all;
    };
    QVERIFY(offered(QStringLiteral("head.w")).contains(QStringLiteral("head.weight ")));
    const QStringList fields = offered(QStringLiteral("head.weight "));
    QVERIFY2(fields.size() == 9, qPrintable(fields.join('|')));
    QCOMPARE(offered(QStringLiteral("head.weight max >")),
             QStringList({QStringLiteral("head.weight max > "), QStringLiteral("head.weight max >= ")}));
    w.loop().act([&] { text->clear(); });
    for (const QString& field : fields) QVERIFY(enter(field + QStringLiteral("> 1e30")));
    QVERIFY2(w.loop().wait([&] { return w->store().breakpoints().size() == before + 10; }) && !problem->isVisible(),
             qPrintable(problem->text()));
  }
};

SS_QT_CLASS(QApplication, SmallThingsTest)
#include "tst_small_things.moc"
