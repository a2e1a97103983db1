// SPDX-License-Identifier: GPL-3.0-or-later
// A model on its way into the window: looked at, left, refused, and what another one leaves of the session that was there.
#include <QAction>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "tests/support/qt_classes.h"
#include "tests/workbench/graph_values.h"
#include "tests/workbench/made_models.h"
#include "tests/workbench/set_up_form.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/tokens.h"

using namespace stepscope;

class OpeningTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  static QString sampleProject() { return QStringLiteral(SOURCE_FOLDER "/app/samples/two_runs/two_runs.stepscope"); }
  static QString focusName() {
    const QWidget* focus = QApplication::focusWidget();
    return focus ? QLatin1String(focus->metaObject()->className()) + ' ' + focus->objectName() : QStringLiteral("nobody");
  }
  // The view, or the text that stands in its place.
  static bool hasKeyboard(WindowDriver& w, const char* view) {
    const auto* frame = w->findChild<QWidget*>(QLatin1String(view) + QStringLiteral("_frame"));
    const QWidget* focus = QApplication::focusWidget();
    return frame && focus && frame->isAncestorOf(focus);
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
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
    QVERIFY2(hasKeyboard(w, "instructions"), qPrintable(focusName()));
    QVERIFY(!shownSetUp(w));
    QVERIFY(w->store().graph() && !w->notice().isProblem());
    w.picture(QStringLiteral("look-left"));
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    QVERIFY(shownSetUp(w));
    QVERIFY_LOOP(w);
  }

  // Whatever layout the window was left in: before a build only the graph has something to show.
  void aLookShowsTheGraphInEveryLayout() {
    WindowDriver w({1600, 1000});
    w.loop().act([&] { w->applyLayout(QStringLiteral("Memory")); });
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QVERIFY(w.settled());
    const View* graph = w->board().find(QStringLiteral("graph"));
    QVERIFY(graph && graph->isVisible());
    w.picture(QStringLiteral("look-in-memory"));
    // Once: whoever goes to another layout then stays there. The build leaves the keyboard in the list.
    w.loop().act([&] { w->applyLayout(QStringLiteral("Step")); });
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY2(hasKeyboard(w, "instructions"), qPrintable(focusName()));
  }

  // Runs, curves and answers of a project do not stand under the title of another model.
  void aModelThatIsLookedAtHasNoRunsOfAnotherProject() {
    WindowDriver w({1600, 1000});
    QVERIFY_DONE(w.openRecorded(sampleProject()), w);
    const ProjectFacts& project = w->store().project();
    QVERIFY(w.loop().wait([&] { return project.runs().size() == 2; }));
    w.loop().act([&] { emit w->wishes().runSql(QStringLiteral("SELECT count(*) FROM steps")); });
    QVERIFY(w.loop().wait([&] { return !project.sqlRunning() && project.sql().rows.size() == 1; }));
    w.loop().act([&] { w->applyLayout(QStringLiteral("Compare")); });
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QVERIFY(w.settled());
    QVERIFY(w->windowTitle().startsWith(QStringLiteral("digits")));
    QVERIFY(project.runs().empty() && project.sql().rows.empty() && !project.runComparison());
    QVERIFY(project.projectPath().isEmpty() && project.startupHistory().startups.empty());
    QCOMPARE(cellsOf(*w.view(QStringLiteral("runs"))), QStringList());
    w.picture(QStringLiteral("look-after-project"));
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY(w.loop().wait([&] { return !project.projectPath().isEmpty() && project.runs().size() == 1; }));
  }

  // What is asked of it in the moment in which it is left.
  void aProjectThatIsLeftAnswersToNobody() {
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(sampleProject()), w);
    const ProjectFacts& project = w->store().project();
    QVERIFY(w.loop().wait([&] { return project.runs().size() == 2; }));
    w.loop().act([&] {
      w->recording().queries().refreshRuns();
      w->recording().queries().runSql(QStringLiteral("SELECT count(*) FROM steps"));
      w->recording().queries().closeProject();
    });
    QVERIFY(w.loop().wait([&] { return w->recording().idle(); }) && w.settled());
    QVERIFY(project.runs().empty() && project.sql().rows.empty() && !project.sqlRunning());
  }

  // On the start page there is no view that Options could show.
  void nothingIsOfferedThatDoesNothing() {
    WindowDriver w;
    QVERIFY(!w->actions()[QStringLiteral("options")]->isEnabled());
    QVERIFY(!w->actions()[QStringLiteral("breakpoint_add")]->isEnabled());
    w.picture(QStringLiteral("start-page"));
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY(w->actions()[QStringLiteral("options")]->isEnabled());
    QVERIFY(w->actions()[QStringLiteral("breakpoint_add")]->isEnabled());
    QVERIFY_DONE(w.openRecorded(sampleProject()), w);
    QVERIFY(!w->actions()[QStringLiteral("breakpoint_add")]->isEnabled());
    View* runs = w.view(QStringLiteral("runs"));
    auto* table = runs->findChild<QTableView*>();
    QVERIFY(w.loop().wait([&] { return table->model()->rowCount() == 2; }));
    w.loop().act([&] { emit table->customContextMenuRequested(table->visualRect(table->model()->index(0, 0)).center()); });
    const auto* again = runs->findChild<QAction*>(QStringLiteral("new_run"));
    QVERIFY(again && !again->isEnabled());
    runs->findChild<QMenu*>()->close();
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

  // A loss that is attached compares with the labels that the model has; without an array of that name the reason stands
  // at the field and says what to do.
  void anAttachedLossTakesTheLabelsOfTheModel() {
    WindowDriver w({1600, 1000});
    SetUpDialog* dialog = w.open(bundledModels()[0].model);  // digits: image, label
    QVERIFY2(dialog, qPrintable(w.failure()));
    const auto attach = [](SetUpDialog& form) {
      for (auto* box : form.findChildren<QComboBox*>())
        if (const int at = box->findText(QStringLiteral("attach to logits")); at >= 0) box->setCurrentIndex(at);
    };
    const auto labels = [](SetUpDialog& form) { return form.findChild<QComboBox*>(QStringLiteral("set_up_labels")); };
    QVERIFY(labels(*dialog) && !labels(*dialog)->isVisible());
    w.loop().act([&] { attach(*dialog); });
    QVERIFY(labels(*dialog)->isVisible());
    QCOMPARE(labels(*dialog)->currentText(), QStringLiteral("label"));
    w.picture(QStringLiteral("attached-labels"));
    QCOMPARE(pressBuild(w, *dialog), QString());
    QVERIFY_DONE(w.act("step_whole"), w);
    const double loss = w->store().steps().back()->loss();
    QVERIFY2(loss > 1 && loss < 5, qPrintable(QString::number(loss)));

    // A new input that the data does not feed.
    w.loop().act([&] { w->actions()[QStringLiteral("configure")]->trigger(); });
    QCOMPARE(labels(*shownSetUp(w))->currentText(), QStringLiteral("label"));
    w.loop().act([&] {
      labels(*shownSetUp(w))->setCurrentText(QStringLiteral("answers"));
      shownSetUp(w)->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click();
    });
    const auto refusal = [&] {
      auto* shown = shownSetUp(w);
      return shown ? shown->findChild<QLabel*>(QStringLiteral("set_up_refusal")) : nullptr;
    };
    QVERIFY(w.loop().wait([&] { return refusal() && !w->session().busy(); }));
    QVERIFY(w.settled());
    QVERIFY2(refusal()->text().contains(QStringLiteral("no array 'answers'")) &&
                 refusal()->text().contains(QStringLiteral("labels set to the input")),
             qPrintable(refusal()->text()));
    auto* field = labels(*shownSetUp(w));
    QCOMPARE(field->currentText(), QStringLiteral("answers"));
    const int below = refusal()->mapTo(shownSetUp(w), QPoint()).y() - field->mapTo(shownSetUp(w), QPoint()).y();
    QVERIFY2(below > 0 && below < 8 * Metrics::current().unit, qPrintable(QString::number(below)));
    w.picture(QStringLiteral("attached-labels-refused"));
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
};

SS_QT_CLASS(QApplication, OpeningTest)
#include "tst_opening.moc"
