// SPDX-License-Identifier: GPL-3.0-or-later
// Ways that lead over the border between two modes: rewind, another set-up, full speed, cancel. What stands in the window
// belongs to where it is, or says from where it is.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/workbench/made_models.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/batch/picture_grid.h"
#include "views/common/details.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/row_table.h"
#include "views/common/run_times.h"
#include "views/common/tokens.h"
#include "views/compare/compare_view.h"
#include "views/open_dialog/set_up_dialog.h"
#include "views/tensors/statistics_panel.h"

using namespace stepscope;

namespace {

// The text of every cell of a table, row by row.
QStringList cellsOf(View& view) {
  QStringList cells;
  const auto* table = view.findChild<QTableView*>();
  for (int r = 0; table && r < table->model()->rowCount(); ++r)
    for (int c = 0; c < table->model()->columnCount(); ++c) cells << table->model()->index(r, c).data().toString();
  return cells;
}

int valueOf(const WindowDriver& w, const std::function<bool(const snapshot::Value&)>& wanted) {
  const auto& store = const_cast<WindowDriver&>(w)->store();
  for (const auto& v : store.graph()->graph().values())
    if (wanted(v)) return v.id();
  return -1;
}

SetUpDialog* shownSetUp(WindowDriver& w) {
  for (auto* dialog : w->findChildren<SetUpDialog*>())
    if (dialog->isVisible()) return dialog;
  return nullptr;
}

}  // namespace

class JourneyTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // The panes show the values of the step that a rewind came to, or say that there are none.
  void afterARewindNoValueIsOfAnotherStep() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"record.batch", "1"}}), w);
    const int loss = w->store().graph()->graph().loss();
    const int image = valueOf(w, [](const auto& v) { return v.role() == snapshot::INPUT && v.dims_size() == 4; });
    const int parameter = valueOf(w, [](const auto& v) { return v.role() == snapshot::INITIALIZER && v.trained(); });
    QVERIFY(loss >= 0 && image >= 0 && parameter >= 0);
    w->session().watch(loss, true);
    w->session().watch(parameter, true);
    QVERIFY(w.settled());

    // Before anything ran there is nothing to show, not zeros.
    QVERIFY(w.select(Selection::ofValue(image)));
    QVERIFY(w.shownTensor() && w.shownTensor()->elsewhere() && w.shownTensor()->data().empty());

    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.settled());
    QVERIFY(w.select(Selection::ofValue(parameter)));
    const std::string then = w.shownTensor()->data();
    QCOMPARE(w.shownTensor()->step(), 2);
    w.loop().act([&] { w->session().train(4); });
    QVERIFY(w.settled());
    QVERIFY(w.select(Selection::ofValue(loss)));
    QCOMPARE(w.shownTensor()->step(), 6);
    QVERIFY(w->store().statistics(loss) && w->store().timing(0).step == 6);
    const std::string bytesOfSix = w.shownTensor()->data();
    QVERIFY(!bytesOfSix.empty());
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.loop().act([batch] { batch->openPage(BatchView::kContents); });
    QVERIFY(w.loop().wait([batch] { return batch->findChild<PictureGrid*>()->pictures() == 32; }, 5'000));

    w.loop().act([&] { w->session().rewind(3); });
    QVERIFY(w.settled());
    w.picture(QStringLiteral("rewound"));
    QCOMPARE(w->store().position().step(), 3);
    QCOMPARE(w->store().steps().size(), std::size_t{3});
    QVERIFY(w.select(Selection::ofValue(loss)));
    w.picture(QStringLiteral("rewound-loss"));
    // A busy machine keeps no state of step 3: the steps before it run again, and leave the loss of step 2.
    if (w.shownTensor()->data().empty()) {
      QVERIFY(w.shownTensor()->elsewhere() && w.shownCells().isEmpty());
    } else {
      QCOMPARE(w.shownTensor()->step(), 2);
      QVERIFY2(w.shownTensor()->data() != bytesOfSix, "the bytes of step 6");
    }
    QVERIFY2(!w->store().statistics(loss) || w->store().statisticsStep(loss) == 2, "statistics of step 6");
    // State is there, as it was.
    QVERIFY(w.select(Selection::ofValue(parameter)));
    QCOMPARE(w.shownTensor()->step(), 2);
    QVERIFY2(w.shownTensor()->data() == then, "the parameter is that of step 2, bit for bit");
    QCOMPARE(w->store().statisticsStep(parameter), 2);
    for (int i = 0; i < w->store().plan()->size(); ++i) QVERIFY(w->store().timing(i).step < 3);
    QVERIFY2(batch->findChild<PictureGrid*>()->isHidden() || batch->findChild<PictureGrid*>()->pictures() == 0 ||
                 !batch->findChild<PictureGrid*>()->isVisible(),
             "the pictures of step 6");
    View* watch = w.view(QStringLiteral("watch"));
    QVERIFY(watch);
    w.picture(QStringLiteral("rewound-watch"));
    QCOMPARE(cellsOf(*watch).filter(QStringLiteral("6")).filter(QRegularExpression(QStringLiteral("^6$"))), QStringList());

    // And the step that runs then has its values.
    QVERIFY_DONE(w.act("step_whole"), w);
    w.view(QStringLiteral("tensors"));
    QVERIFY(w.select(Selection::ofValue(loss)));
    QCOMPARE(w.shownTensor()->step(), 3);
    QVERIFY(!w.shownTensor()->data().empty());
    QVERIFY_LOOP(w);
  }

  // A step that is given up leaves no values behind, either.
  void aStepThatIsGivenUpLeavesNoValues() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const int image = valueOf(w, [](const auto& v) { return v.role() == snapshot::INPUT && v.dims_size() == 4; });
    QVERIFY(w.select(Selection::ofValue(image)));
    QCOMPARE(w.shownTensor()->step(), 0);
    QVERIFY(!w.shownTensor()->data().empty());
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.select({}) && w.select(Selection::ofValue(image)));
    QCOMPARE(w.shownTensor()->step(), 1);
    QVERIFY_DONE(w.act("abandon"), w);
    QVERIFY(w.select({}) && w.select(Selection::ofValue(image)));
    QVERIFY2(w.shownTensor()->data().empty() && w.shownTensor()->elsewhere(), "the batch of step 1, labelled 0");
  }

  // "Break on NaN" holds at full speed: the run stops where the number came from, and names the row that brought it.
  void aNanAtStep400StopsARunAtFullSpeed() {
    const QString data = folder_.filePath(QStringLiteral("poisoned.safetensors"));
    QVERIFY(writeDigits(data, 410, 400));
    TestModel model = bundledModels()[0];
    model.data = data;
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(model), w);
    w.loop().act([&] { w->session().train(410); });
    QVERIFY(w.settled());
    const auto& p = w->store().position();
    QCOMPARE(p.step(), 400);
    QVERIFY2(p.in_step() && p.breakpoint() != 0, p.stopped_by().c_str());
    QCOMPARE(w->store().steps().size(), std::size_t{400});
    for (const StepPtr& step : w->store().steps())
      QVERIFY2(step->has_gradient_norm() && step->gradient_norm() > 0, "the gradient norm of every step");
    const auto& alerts = w->store().alerts();
    const auto alert = std::find_if(alerts.begin(), alerts.end(), [](const auto& a) { return a.code() == "nan"; });
    QVERIFY(alert != alerts.end());
    QVERIFY2(std::count_if(alerts.begin(), alerts.end(), [](const auto& a) { return a.code() == "nan"; }) == 1,
             alert->message().c_str());
    QCOMPARE(alert->step(), 400);
    QCOMPARE(alert->instruction(), p.instruction() - 1);
    QVERIFY(alert->has_sample());
    QCOMPARE(alert->sample(), 3);
    const int image = valueOf(w, [](const auto& v) { return v.role() == snapshot::INPUT && v.dims_size() == 4; });
    QCOMPARE(alert->value(), image);
    QVERIFY2(w->notice().isStop() && w->notice().text().contains(QStringLiteral("row 3")), qPrintable(w->notice().text()));
    QCOMPARE(w->selection().selection().instruction, alert->instruction());
    w.view(QStringLiteral("training"));
    w.picture(QStringLiteral("nan-stopped"));

    // From the count of NaN one click leads to the element.
    QVERIFY(w.select(Selection::ofValue(image)));
    QCOMPARE(w.shownTensor()->statistics().nan(), 1);
    auto* statistics = w->board().find(QStringLiteral("tensors"))->findChild<StatisticsPanel*>();
    QVERIFY(statistics);
    w.loop().act([&] { emit statistics->findChild<Details*>()->commandClicked(QStringLiteral("first")); });
    QVERIFY(w.settled());
    const auto* table =
        w->board().find(QStringLiteral("tensors"))->findChild<QTableView*>(QStringLiteral("tensor_elements"));
    QCOMPARE(table->currentIndex().data().toString(), QStringLiteral("NaN"));
    w.picture(QStringLiteral("nan-element"));
    // One bad pixel hides no picture.
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.loop().act([batch] { batch->openPage(BatchView::kContents); });
    w.picture(QStringLiteral("nan-batch"));
    QVERIFY(w.loop().wait([batch] { return batch->findChild<PictureGrid*>()->pictures() == 32; }, 5'000));
    QVERIFY_LOOP(w);
  }

  // With nothing to break on the run goes on, tells once, and one click goes back to where it came from.
  void aRunThatGoesOnTellsOfTheFirstNanAndLeadsBackToIt() {
    const QString data = folder_.filePath(QStringLiteral("poisoned.safetensors"));
    QVERIFY(writeDigits(data, 410, 400));
    TestModel model = bundledModels()[0];
    model.data = data;
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(model), w);
    w.loop().act([&] { w->session().setBreakpoints({}); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->session().train(406); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 406);
    QVERIFY(std::isnan(w->store().steps().back()->loss()));
    const auto& alerts = w->store().alerts();
    const auto isNan = [](const auto& a) { return a.code() == "nan"; };
    QCOMPARE(std::count_if(alerts.begin(), alerts.end(), isNan), 1);
    const snapshot::Alert alert = *std::find_if(alerts.begin(), alerts.end(), isNan);
    QCOMPARE(alert.step(), 400);
    QCOMPARE(alert.sample(), 3);
    QVERIFY(w->notice().isProblem());
    w.view(QStringLiteral("training"));
    w.picture(QStringLiteral("nan-goes-on"));
    auto* show = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QVERIFY(show && show->isVisible());
    w.loop().act([show] { show->click(); });
    QVERIFY(w.settled());
    QCOMPARE(w->store().position().step(), 400);
    QCOMPARE(w.instruction(), alert.instruction() + 1);
    QCOMPARE(w->store().steps().size(), std::size_t{400});
    QCOMPARE(w->selection().selection().instruction, alert.instruction());
    QVERIFY(w.shownTensor() && w.shownTensor()->statistics().nan() > 0);
    w.picture(QStringLiteral("nan-shown"));
    QVERIFY_LOOP(w);
  }

  // A model is looked at before anything is built, and its set-up can be left.
  void aModelOpensToItsGraphWithoutABuild() {
    WindowDriver w({1600, 1000});
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QVERIFY(w.settled());
    QVERIFY(w->store().graph() && w->store().graph()->graph().nodes_size() > 10);
    QVERIFY(!w->store().plan() && !w->session().built());
    QVERIFY2(w->board().isVisible(), "the views, not the start page");
    QVERIFY2(!dialog->isModal() && !dialog->isWindow(), "a panel beside the views");
    w.picture(QStringLiteral("look"));
    QVERIFY(w.select(Selection::ofNode(w->store().graph()->graph().nodes(3).id())));
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_cancel"))->click(); });
    QVERIFY(w.settled());
    QVERIFY(!shownSetUp(w));
    QVERIFY(w->store().graph() && !w->notice().isProblem());
    w.picture(QStringLiteral("look-left"));
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    QVERIFY(shownSetUp(w));
    QVERIFY_LOOP(w);
  }

  // Another model that was opened and not wanted leaves the session as it was, at its place.
  void cancelLeavesTheSessionThatWasThere() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    for (int i = 0; i < 3; ++i) QVERIFY_DONE(w.act("step"), w);
    const QString model = w->session().modelPath();
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QVERIFY(dialog->windowTitle().contains(QStringLiteral("language_model")));
    const auto stays = [&] {
      return w->session().built() && w->session().modelPath() == model && w.instruction() == 3 &&
             w->store().steps().size() == 1 && w->store().plan();
    };
    QVERIFY(stays());
    w.picture(QStringLiteral("other-set-up"));
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_cancel"))->click(); });
    QVERIFY(w.settled());
    QVERIFY(stays());
    QVERIFY_DONE(w.act("step"), w);
    QCOMPARE(w.instruction(), 4);
    // Looked at, it takes the place.
    dialog = w.open(bundledModels()[1].model);
    QVERIFY(dialog);
    auto* look = dialog->findChild<QPushButton*>(QStringLiteral("set_up_look"));
    QVERIFY(look && look->isVisible());
    w.loop().act([look] { look->click(); });
    QVERIFY(w.loop().wait([&] { return w->session().modelPath() == bundledModels()[1].model && w->store().graph(); }));
    QVERIFY(!w->session().built());
    QVERIFY_LOOP(w);
  }

  // Another model in place of one that is running: the run ends when the person says so.
  void aRunIsNotEndedWithoutAWord() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const QString model = w->session().modelPath();
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() >= 3; }));
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    w.loop().act([&] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_look"))->click(); });
    QVERIFY2(w->notice().text().contains(QStringLiteral("is running, at step")), qPrintable(w->notice().text()));
    const std::size_t steps = w->store().series().size();
    QVERIFY(w.loop().wait([&] { return w->store().series().size() > steps; }));
    QVERIFY(w->session().running() && w->session().modelPath() == model);
    w.picture(QStringLiteral("look-while-running"));
    w.loop().act([&] { w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"))->click(); });
    QVERIFY(w.loop().wait([&] { return w->session().modelPath() == bundledModels()[1].model && w->store().graph(); }));
    QVERIFY(!w->session().built());
    QVERIFY_LOOP(w);
  }

  // The reason stands beside the field at fault; what was built before is there again, where it was.
  void aBuildThatFailsComesBackToItsField() {
    WindowDriver w({1600, 1000});
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    const auto tryTrain = [&](SetUpDialog* form, const QString& text) {
      form->findChild<QLineEdit*>(QStringLiteral("set_up_train"))->setText(text);
      w.loop().act([form] { form->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    };
    const auto refused = [&] {
      auto* shown = shownSetUp(w);
      return shown && shown->findChild<QLabel*>(QStringLiteral("set_up_refusal"));
    };
    tryTrain(dialog, QStringLiteral("nomatch"));
    QVERIFY(w.loop().wait(refused));
    QVERIFY(w.settled());
    SetUpDialog* again = shownSetUp(w);
    auto* reason = again->findChild<QLabel*>(QStringLiteral("set_up_refusal"));
    QVERIFY2(reason->isVisible() && reason->text().contains(QStringLiteral("nomatch")), qPrintable(reason->text()));
    auto* field = again->findChild<QLineEdit*>(QStringLiteral("set_up_train"));
    QCOMPARE(field->text(), QStringLiteral("nomatch"));
    QVERIFY2(reason->mapTo(again, QPoint()).y() > field->mapTo(again, QPoint()).y(), "below its field");
    w.picture(QStringLiteral("refused"));
    tryTrain(again, QString());
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    QVERIFY(w.settled());
    QVERIFY(!shownSetUp(w));

    // With a session: it is there again, at its step and instruction.
    QVERIFY_DONE(w.act("step_whole"), w);
    for (int i = 0; i < 5; ++i) QVERIFY_DONE(w.act("step"), w);
    const int parameter = valueOf(w, [](const auto& v) { return v.role() == snapshot::INITIALIZER && v.trained(); });
    QVERIFY(w.select(Selection::ofValue(parameter)));
    const std::string bits = w.shownTensor()->data();
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    QVERIFY(shownSetUp(w));
    tryTrain(shownSetUp(w), QStringLiteral("nomatch"));
    QVERIFY(w.loop().wait([&] { return refused() && w->session().built() && !w->session().busy(); }));
    QVERIFY(w.settled());
    QVERIFY(w->session().built());
    QCOMPARE(w->store().position().step(), 1);
    QCOMPARE(w.instruction(), 5);
    QVERIFY(w.select({}) && w.select(Selection::ofValue(parameter)));
    QVERIFY(w.shownTensor()->data() == bits);
    QVERIFY_DONE(w.act("step"), w);
    QCOMPARE(w.instruction(), 6);
  }

  // What is proposed builds, also where nobody knows how many classes there are, and says what it will train.
  void theLossThatIsOfferedFirstBuilds() {
    const QString path = folder_.filePath(QStringLiteral("scaled.onnx"));
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    const std::string bytes = testing::scaledModel(std::string(300, 'w'));
    file.write(bytes.data(), static_cast<qint64>(bytes.size()));
    file.close();
    WindowDriver w({1600, 1000});
    SetUpDialog* dialog = w.open(path);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QVERIFY(w.settled());
    w.picture(QStringLiteral("offered"));
    QCOMPARE(dialog->findChild<QComboBox*>(QStringLiteral("set_up_loss_function"))->currentData().toString(),
             QStringLiteral("mse"));
    const auto labels = dialog->findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(),
                        [](const QLabel* l) { return l->text().startsWith(QStringLiteral("1 of 1 tensors")); }));
    // A name of 300 characters is short where it is read, and whole in the tooltip.
    for (const QLabel* l : labels) QVERIFY2(!l->text().contains(QString(100, 'w')), qPrintable(l->objectName()));
    QVERIFY(dialog->width() <= w->width() * 6 / 10);
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return (w->session().built() && !w->session().busy()) || w->notice().isProblem(); }));
    QVERIFY2(w->session().built(), qPrintable(w->notice().text()));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY(std::isfinite(w->store().steps().back()->loss()));
  }

  // Another set-up of the same model keeps what was chosen besides, and no proof of the plan that is gone.
  void anotherSetUpKeepsTheOptions() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.inplace"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.limit"), QStringLiteral("2.5 GiB")); });
    QVERIFY(w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    const auto value = [&](const char* name) {
      for (const auto& o : w->store().options())
        if (o.name() == name) return QString::fromStdString(o.value());
      return QString();
    };
    QCOMPARE(value("memory.inplace"), QStringLiteral("off"));
    QVERIFY(w->store().findings().optionProof());
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    SetUpDialog* dialog = shownSetUp(w);
    QVERIFY(dialog);
    dialog->findChild<QLineEdit*>(QStringLiteral("set_up_accumulate"))->setText(QStringLiteral("2"));
    w.loop().act([dialog] { dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.loop().wait([&] { return value("accumulate") == u"2" && !w->session().busy(); }));
    QVERIFY(w.settled());
    QCOMPARE(value("memory.inplace"), QStringLiteral("off"));
    QCOMPARE(value("memory.limit"), QStringLiteral("2.5 GiB"));
    QVERIFY2(!w->store().findings().optionProof(), "the proof was of another plan");
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    QVERIFY(shownSetUp(w));
    QCOMPARE(shownSetUp(w)->findChild<QLineEdit*>(QStringLiteral("set_up_accumulate"))->text(), QStringLiteral("2"));
  }

  // A run of its own with the same settings, data and seed; named, and with what differs in the list.
  void aNewRunBeginsAtStepZeroWithTheSameSettings() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.recorded());
    const double first = w->store().steps().front()->loss(), last = w->store().steps().back()->loss();
    const int loss = w->store().graph()->graph().loss();
    w.loop().act([&] { w->session().watch(loss, true); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->recording().nameRun(QStringLiteral("plain")); });
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    QVERIFY(w.recorded());
    QCOMPARE(w->store().position().step(), 0);
    QVERIFY(w->store().steps().empty() && w->store().series().empty());
    QCOMPARE(w->store().watched(), std::vector<int>{loss});
    QVERIFY(!w->store().breakpoints().empty());
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.recorded());
    QCOMPARE(w->store().steps().front()->loss(), first);
    QCOMPARE(w->store().steps().back()->loss(), last);
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.inplace"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([&] { return w->store().project().runs().size() == 2 && w->recording().idle(); }));
    View* runs = w.view(QStringLiteral("runs"));
    QVERIFY(runs);
    w.loop().act([&] { w->recording().queries().refreshRuns(); });
    QVERIFY(w.loop().wait([&] {
      const QStringList cells = cellsOf(*runs);
      return cells.contains(QStringLiteral("1  plain")) && cells.contains(QStringLiteral("memory.inplace off"));
    }));
    w.picture(QStringLiteral("runs"));
    QVERIFY_LOOP(w);
  }

  // A run that was walked through, one at full speed and one that recorded every instruction: the list says which is which,
  // and no time of one is judged by that of another.
  void timesOfOtherSpeedsAreSaidToBeSo() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    const auto runs = [&](std::size_t count) {
      return w.loop().wait([&] {
        return w->store().project().runs().size() == count && w->store().project().runs().back().steps == 4 &&
               RunTimes::of(w->store().project()).step(static_cast<std::int64_t>(count)).n > 0;
      });
    };
    const auto shown = [&] {
      QVERIFY(w.recorded());
      w.loop().act([&] { w->recording().queries().refreshRuns(); });
    };
    w.loop().act([&] { w->session().train(4); });
    shown();
    QVERIFY(runs(1));
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("record"), QStringLiteral("steps")); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->session().train(4); });
    shown();
    QVERIFY(runs(2));
    QVERIFY_DONE(w.act("new_run"), w);
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    for (int i = 0; i < 4; ++i) QVERIFY_DONE(w.act("step_whole"), w);
    shown();
    QVERIFY(runs(3));
    auto& times = RunTimes::of(w->store().project());
    QCOMPARE(times.step(1).speed, QStringLiteral("recorded"));
    QCOMPARE(times.step(2).speed, QStringLiteral("full speed"));
    QCOMPARE(times.step(3).speed, QStringLiteral("walked"));
    QVERIFY(times.step(1).measured && times.step(1).processors > 0);
    const QStringList cells = cellsOf(*w.view(QStringLiteral("runs")));
    for (const char* speed : {"recorded", "full speed", "walked"})
      QVERIFY2(cells.filter(QLatin1String(speed)).size() == 1, speed);
    w.picture(QStringLiteral("speeds-runs"));
    w.loop().act([&] {
      CompareRequest request;
      request.a = 1;
      request.b = 3;
      emit w->wishes().compareRuns(request);
      w->applyLayout(QStringLiteral("Compare"));
    });
    const auto* note = w.view(QStringLiteral("compare"))->findChild<QLabel*>(QStringLiteral("compare_note"));
    QVERIFY(w.loop().wait([&] { return note->text().contains(QStringLiteral("A recorded, B walked")); }));
    QVERIFY(note->isVisible());
    for (const char* id : {"compare_both", "compare_operators"}) {
      auto* compare = qobject_cast<CompareView*>(w.view(QStringLiteral("compare")));
      w.loop().act([&] { compare->showPage(QLatin1String(id)); });
      QVERIFY(w.settled());
      const auto* model = compare->findChild<View*>(QLatin1String(id))->findChild<RowTableModel*>();
      QVERIFY(model && model->rowCount() > 4);
      for (int r = 0; r < model->rowCount(); ++r) {
        const auto& row = model->row(r).cells;
        if (row[0].text.startsWith(QStringLiteral("Peak"))) continue;
        for (const TableCell& cell : row) QVERIFY2(cell.role != u"ok", qPrintable(row[0].text));
      }
    }
    w.picture(QStringLiteral("speeds-compare"));
    QVERIFY_LOOP(w);
  }

  // F5 runs whole steps, says how far it is, pauses with the same key, and stops where a NaN comes in.
  void oneKeyRunsAndPauses() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QAction* run = w->actions()[QStringLiteral("run")];
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() >= 20; }));
    QVERIFY(w->session().running() && run->isEnabled());
    const auto* where = w->findChild<QLabel*>(QStringLiteral("status_where"));
    QVERIFY(where && where->text().contains(QStringLiteral("Running")) && where->text().contains(QStringLiteral("step")));
    w.picture(QStringLiteral("running"));
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.settled());
    QVERIFY(!w->session().running());
    QCOMPARE(w->store().position().step(), static_cast<std::int64_t>(w->store().series().size()));
    // At full speed with a goal it is named.
    w.loop().act([&] { w->session().train(100'000); });
    QVERIFY(w.loop().wait([&] { return where->text().contains(QStringLiteral(" of ")); }));
    QVERIFY2(where->text().contains(QStringLiteral("Full speed")), qPrintable(where->text()));
    const auto* note = w->findChild<QLabel*>(QStringLiteral("status_note"));
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.settled());
    QVERIFY(!w->session().running());
    QCOMPARE(note->text(), QStringLiteral("Paused"));
    // The loss beside the next step says that it is of the one before.
    const auto* loss = w->findChild<QLabel*>(QStringLiteral("status_loss"));
    const std::int64_t next = w->store().position().step();
    QVERIFY2(loss->text().endsWith(QStringLiteral(" of step %1").arg(format::count(next - 1))), qPrintable(loss->text()));
    QVERIFY_LOOP(w);
  }

  // Where only NaN and Inf are watched, F5 costs little more than full speed; and while it runs the values follow.
  void aRunThatIsWatchedIsNearlyAsFast() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    const int loss = w->store().graph()->graph().loss();
    QAction* run = w->actions()[QStringLiteral("run")];
    const auto median = [&](std::size_t first) {
      std::vector<std::int64_t> ns(w->store().series().ns().begin() + static_cast<std::ptrdiff_t>(first),
                                   w->store().series().ns().end());
      std::nth_element(ns.begin(), ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2), ns.end());
      return static_cast<double>(ns[ns.size() / 2]);
    };
    constexpr std::size_t kSteps = 8;
    double best = 1e9;
    for (int round = 0; round < 12 && best > 1.2; ++round) {
      std::size_t first = w->store().series().size() + (round == 0 ? 1 : 0);  // without the first step of all
      w.loop().act([&] { w->session().train(kSteps + (round == 0 ? 1 : 0)); });
      QVERIFY(w.settled());
      const double full = median(first);
      first = w->store().series().size();
      w.loop().act([&] { run->trigger(); });
      QVERIFY(w.loop().wait([&] { return w->store().series().size() >= first + kSteps; }));
      w.loop().act([&] { run->trigger(); });
      QVERIFY(w.settled());
      best = std::min(best, median(first) / full);
    }
    QVERIFY2(best <= 1.2, qPrintable(QStringLiteral("F5 takes %1 of full speed").arg(best)));
    w.loop().act([&] { w->session().watch(loss, true); });
    QVERIFY(w.settled());
    std::set<std::int64_t> shown;
    const auto follow = QObject::connect(&w->store(), &SnapshotStore::positionChanged, &w->store(), [&] {
      if (w->session().running()) shown.insert(w->store().statisticsStep(loss));
    });
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.loop().wait([&] { return shown.size() >= 8; }));
    w.loop().act([&] { run->trigger(); });
    QVERIFY(w.settled());
    QObject::disconnect(follow);
    QVERIFY_LOOP(w);
  }

  // What does not fit is offered a way to fit.
  void aPlanThatDoesNotFitIsOfferedToFitByRecompute() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    const auto& plan = w->store().plan()->plan();
    const std::int64_t need = plan.persistent_bytes() + plan.arena_bytes(), limit = need - plan.arena_bytes() / 8;
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.limit"), QString::number(limit)); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY(w.settled());
    auto* fit = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    w.picture(QStringLiteral("does-not-fit"));
    QVERIFY2(fit && fit->isVisible() && fit->text().contains(QStringLiteral("recompute")), qPrintable(w->notice().text()));
    w.loop().act([fit] { fit->click(); });
    QVERIFY(w.settled());
    w.loop().act([&] { w->notice().clear(); });
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QCOMPARE(w->store().steps().size(), std::size_t{1});
    const auto& fitted = w->store().plan()->plan();
    QVERIFY(fitted.persistent_bytes() + fitted.arena_bytes() <= limit);
    auto* field =
        w->board().find(QStringLiteral("recompute"))->findChild<QLineEdit*>(QStringLiteral("recompute_budget_text"));
    QVERIFY(field && !field->text().isEmpty());
    w.picture(QStringLiteral("fits"));
  }

  // Where recompute cannot reach the limit it says so, and is not offered again.
  void aLimitThatRecomputeCannotReachIsSaidToBeSo() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    const std::int64_t limit = w->store().plan()->plan().persistent_bytes() + 100'000;
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("memory.limit"), QString::number(limit)); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QVERIFY(w.settled());
    auto* action = w->notice().findChild<QPushButton*>(QStringLiteral("notice_action"));
    QCOMPARE(action->text(), QStringLiteral("Fit by recompute"));
    w.loop().act([action] { action->click(); });
    QVERIFY(w.loop().wait([&] { return w->notice().text().startsWith(QStringLiteral("Recompute does not make it fit")); }));
    QVERIFY(w.settled());
    QVERIFY2(w->notice().text().endsWith(QStringLiteral("has no limit")), qPrintable(w->notice().text()));
    QCOMPARE(action->text(), QStringLiteral("Change the set-up"));
    w.picture(QStringLiteral("does-not-fit-at-all"));
    w.loop().act([action] { action->click(); });
    QVERIFY(w.loop().wait([&] { return shownSetUp(w) != nullptr; }));
  }

  // What is selected is the same thing in the plan that an option makes, in every view.
  void theSelectionFollowsIntoAnotherPlan() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
    const auto label = [&] {
      const auto* in = w->store().plan()->instruction(w->selection().selection().instruction);
      return in ? QString::fromStdString(in->label()) : QString();
    };
    int loss = -1;
    for (int i = 0; i < w->store().plan()->size() && loss < 0; ++i)
      if (w->store().plan()->instruction(i)->op() == "SoftmaxCrossEntropyLossGrad") loss = i;
    QVERIFY(w.select(Selection::ofInstruction(loss)));
    const QString before = label();
    const std::string node = w->store().graph()->node(w->selection().selection().node)->name();
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("pass.fuse_epilogue"), QStringLiteral("off")); });
    QVERIFY(w.settled());
    QVERIFY(w->store().plan()->size() > loss && w->selection().selection().instruction > loss);
    QCOMPARE(label(), before);
    const auto* now = w->store().graph()->node(w->selection().selection().node);
    QVERIFY(now && now->name() == node);
  }
};

QTEST_MAIN(JourneyTest)
#include "tst_journeys.moc"
