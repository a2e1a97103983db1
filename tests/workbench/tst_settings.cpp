// SPDX-License-Identifier: GPL-3.0-or-later
// What a person sets: switches of options and what waits for the next step, settings of the training that are made of the
// options' metadata, sizes, breakpoints with their conditions; what is remembered of it.
#include <QAbstractItemView>
#include <QComboBox>
#include <QCompleter>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <optional>

#include "app/workbench/recent_files.h"
#include "app/workbench/window_settings.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/more_settings.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

class SettingsTest : public QObject {
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

  // Heat, filters and what a run breaks on belong to a model, also when the program is started again.
  void whatARunBreaksOnIsRememberedWithItsModel() {
    QTemporaryDir settings;
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
    const auto breaks = [](MainWindow& window) {
      QStringList on;
      for (const auto& b : window.store().breakpoints())
        if (b.enabled()) on << (b.nan() ? QStringLiteral("nan") : b.new_inf() ? QStringLiteral("inf") : QStringLiteral("?"));
      return on.join(' ');
    };
    const auto opened = [](MainWindow& window, const TestModel& model) {
      window.session().inspect(model.model, {});
      return QTest::qWaitFor([&] { return window.store().model() && !window.session().busy(); }, 20'000);
    };
    {
      MainWindow window(true);
      QVERIFY(opened(window, bundledModels()[0]));
      auto all = window.store().breakpoints();
      for (auto& b : all)
        if (b.nan()) b.set_enabled(false);
      window.session().setBreakpoints(all);
      QCOMPARE(breaks(window), QStringLiteral("inf"));
      QVERIFY(window.close());
    }
    MainWindow again(true);
    QVERIFY(opened(again, bundledModels()[0]));
    QCOMPARE(breaks(again), QStringLiteral("inf"));
    QVERIFY(opened(again, bundledModels()[1]));
    QCOMPARE(breaks(again), QStringLiteral("nan inf"));
  }

  // However many models and projects were opened since; the list of recent files is shorter.
  void aSetUpIsRememberedOfManyModels() {
    QTemporaryDir folder;
    QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, folder.path());
    SnapshotStore store;
    WindowSettings settings(true, store);
    RecentFiles files(settings, store);
    snapshot::Configure asked;
    auto* rate = asked.add_settings();
    rate->set_name("lr");
    rate->set_value("0.05");
    const QString model = folder.filePath(QStringLiteral("first.onnx"));
    files.noteSetUp(model, asked);
    files.note(model);
    for (int i = 0; i < 100; ++i) files.note(folder.filePath(QStringLiteral("%1.onnx").arg(i)));
    const snapshot::Configure last = files.lastSetUp(model);
    QCOMPARE(last.settings_size(), 1);
    QCOMPARE(last.settings(0).value(), std::string("0.05"));
  }

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

SS_QT_CLASS(QApplication, SettingsTest)
#include "tst_settings.moc"
