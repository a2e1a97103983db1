// SPDX-License-Identifier: GPL-3.0-or-later
// Opening a model by hand, with the real worker: what is proposed trains as it stands, can be changed, and says what does
// not fit.
#include <QAction>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSplitter>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "app/workbench/actions.h"
#include "app/workbench/panel_board.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/set_up_form.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"

using namespace stepscope;

class SetUpTest : public QObject {
  Q_OBJECT

  // loss = mean(x · w), w in the file w.bin, which is not there. Empty: it could not be written.
  static QString modelWithoutWeights(const QTemporaryDir& folder) {
    const QByteArray model = QByteArray::fromHex(
        "080812003a83010a110a01780a017712017922064d61744d756c0a260a017912046c6f7373220a5265647563654d65616e2a0f0a086b6565706"
        "4696d731800a001021201672a1e0803080410014201776a11"
        "0a086c6f636174696f6e1205772e62696e70015a130a0178120e0a0c080112080a0208020a020803620e0a046c6f737312060a0408011200420"
        "40a001011");
    QFile file(folder.filePath(QStringLiteral("model.onnx")));
    return file.open(QIODevice::WriteOnly) && file.write(model) == model.size() ? file.fileName() : QString();
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  // The set-up takes room from the columns beside the graph; when it goes they have it back, as the layout or the user
  // wants.
  void columnsComeBackWhenTheSetUpGoes() {
    WindowDriver w({1280, 800});
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    auto* board = w->findChild<PanelBoard*>();
    QVERIFY(w.loop().wait([&] { return board->isVisible() && board->width() < 700; }));
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    const auto widthOf = [&](const char* id) { return w.view(QLatin1String(id))->parentWidget()->width(); };
    const auto least = [&] { return std::min(board->width() / 4, 25 * Metrics::current().unit) - 2; };
    QVERIFY(w.loop().wait([&] { return board->width() > 1200; }));
    QVERIFY2(widthOf("instructions") >= least(), qPrintable(QString::number(widthOf("instructions"))));
    QVERIFY2(widthOf("tensors") >= least(), qPrintable(QString::number(widthOf("tensors"))));

    // Dragged wider, a column stays so through the next set-up.
    auto* handle = board->findChild<QSplitter*>()->handle(1);
    w.loop().act([&] {
      const QPoint from = handle->rect().center();
      QTest::mousePress(handle, Qt::LeftButton, {}, from);
      QTest::mouseMove(handle, from + QPoint(40, 0));
      QTest::mouseRelease(handle, Qt::LeftButton, {}, from + QPoint(40, 0));
    });
    const int dragged = widthOf("instructions");
    QVERIFY2(dragged >= least() + 30, qPrintable(QString::number(dragged)));
    QVERIFY(w.act("configure"));
    QVERIFY(w.loop().wait([&] { return board->width() < 700; }));
    // Two columns that can be read, not three of single letters.
    const int unit = Metrics::current().unit;
    QVERIFY2(widthOf("instructions") >= 14 * unit, qPrintable(QString::number(widthOf("instructions"))));
    QVERIFY(w.view(QStringLiteral("tensors"))->visibleRegion().isEmpty());
    w.loop().act([&] { w->findChild<SetUpDialog*>()->reject(); });
    QVERIFY(w.loop().wait([&] { return board->width() > 1200; }));
    QCOMPARE(widthOf("instructions"), dragged);
    QVERIFY_LOOP(w);
  }

  // What a setting names and is not there is told below its field, also where the field is among the further ones.
  void aStartStateThatIsNotThereIsToldAtItsField() {
    WindowDriver w;
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    const auto fieldOf = [](SetUpDialog& in) { return in.findChild<QLineEdit*>(QStringLiteral("set_up_more_start-state")); };
    QVERIFY(w.loop().wait([&] { return fieldOf(*dialog) != nullptr; }));
    const QString path = QStringLiteral("/nowhere/state.safetensors");
    QPointer<SetUpDialog> first = dialog;
    w.loop().act([&] { fieldOf(*dialog)->setText(path); });
    QVERIFY(!pressBuild(w, *dialog).isEmpty());
    const auto again = [&]() -> SetUpDialog* {
      for (auto* found : w->findChildren<SetUpDialog*>())
        if (found->isVisible() && found != first) return found;
      return nullptr;
    };
    QVERIFY(w.loop().wait([&] { return again() && again()->findChild<QLabel*>(QStringLiteral("set_up_refusal")); }));
    const auto* refusal = again()->findChild<QLabel*>(QStringLiteral("set_up_refusal"));
    QVERIFY(w.loop().wait([&] { return refusal->isVisible(); }));
    QVERIFY2(refusal->text().contains(QStringLiteral("state.safetensors")), qPrintable(refusal->text()));
    w.picture(QStringLiteral("start-state-not-there"));
  }

  // A build from the command line that is refused comes to a set-up with its settings and the reason at the field; left and
  // opened again, it still has them.
  void settingsOfTheCommandLineThatAreRefusedStandInTheSetUp() {
    WindowDriver w;
    QVERIFY(!w.openBuilt(bundledModels()[0],
                         {{"start-state", "/nowhere.safetensors"}, {"lr", "0.123"}, {"optimizer", "adamw"}}));
    const auto shows = [&w] {
      const SetUpDialog* dialog = shownSetUp(w);
      const auto* state = dialog ? dialog->findChild<QLineEdit*>(QStringLiteral("set_up_more_start-state")) : nullptr;
      if (!state) return QStringLiteral("no set-up");
      std::map<std::string, std::string> all;
      const snapshot::Configure configuration = dialog->configuration();
      for (const auto& setting : configuration.settings()) all[setting.name()] = setting.value();
      return QString::fromStdString(all["lr"] + ' ' + all["optimizer"] + ' ' + all["start-state"]);
    };
    QVERIFY(w.loop().wait([&] { return shows() == QStringLiteral("0.123 adamw /nowhere.safetensors"); }));
    QVERIFY(w.loop().wait([&] {
      const auto* refusal = shownSetUp(w)->findChild<QLabel*>(QStringLiteral("set_up_refusal"));
      return refusal && refusal->isVisible();
    }));
    w.picture(QStringLiteral("refused-from-the-command-line"));
    w.loop().act([&] { shownSetUp(w)->reject(); });
    QVERIFY(w.loop().wait([&] { return !shownSetUp(w); }));
    QVERIFY(w.act("configure"));
    QVERIFY(w.loop().wait([&] { return shows() == QStringLiteral("0.123 adamw /nowhere.safetensors"); }));
  }

  // Training goes on beside the open set-up, which says where the next build begins.
  void theSetUpFollowsTheStepThatItBeginsAt() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    QVERIFY(w.act("configure"));
    const auto begins = [&w] {
      const auto* box = shownSetUp(w)->findChild<QComboBox*>(QStringLiteral("set_up_begin"));
      return box ? box->itemText(0) : QString();
    };
    QCOMPARE(begins(), QString());  // nothing was trained
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(begins().startsWith(QStringLiteral("at step 1,")), qPrintable(begins()));
    auto* box = shownSetUp(w)->findChild<QComboBox*>(QStringLiteral("set_up_begin"));
    w.loop().act([box] { box->setCurrentIndex(1); });
    w.loop().act([&] { w->session().train(3); });
    QVERIFY(w.settled());
    QVERIFY2(begins().startsWith(QStringLiteral("at step 4,")), qPrintable(begins()));
    QCOMPARE(box->currentIndex(), 1);
  }

  // The wheel scrolls the page; only a choice that has the focus takes it.
  void theWheelOverAChoiceScrollsThePage() {
    WindowDriver w({1280, 500});
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    const auto notchOver = [&](QWidget* over) {
      w.loop().act([over] {
        const QPointF at = over->rect().center();
        QWheelEvent event(at, over->mapToGlobal(at), {}, {0, -120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
        QSpontaneKeyEvent::setSpontaneous(&event);  // others are not handed on to the parent
        qApp->notify(over, &event);
      });
    };
    auto* tabs = dialog->findChild<QTabWidget*>();
    QVERIFY(w.loop().wait([&] { return tabs->tabText(1) == QStringLiteral("More"); }));
    for (const int page : {0, 1}) {
      w.loop().act([&] { tabs->setCurrentIndex(page); });
      auto* area = tabs->widget(page)->findChild<QScrollArea*>();
      if (!area) area = qobject_cast<QScrollArea*>(tabs->widget(page));
      QVERIFY(area && area->verticalScrollBar()->maximum() > 0);
      int choices = 0;
      for (auto* box : area->widget()->findChildren<QComboBox*>()) {
        if (box->count() < 2 || !box->isVisibleTo(area)) continue;
        ++choices;
        QVERIFY(box->focusPolicy() == Qt::StrongFocus && !box->hasFocus());
        w.loop().act([&] {
          box->setCurrentIndex(0);
          area->verticalScrollBar()->setValue(0);
        });
        notchOver(box);
        QCOMPARE(box->currentIndex(), 0);
        QVERIFY2(area->verticalScrollBar()->value() > 0, qPrintable(box->accessibleName()));
        if (choices > 1) continue;
        w.loop().act([box] { box->setFocus(); });
        notchOver(box);
        QCOMPARE(box->currentIndex(), 1);
        w.loop().act([&] { tabs->setFocus(); });
      }
      QVERIFY(choices > 0);
    }
  }

  void aModelTrainsAsItIsProposed_data() {
    QTest::addColumn<QString>("model");
    for (const TestModel& sample : bundledModels()) QTest::newRow(qPrintable(sample.name)) << sample.model;
    const QDir corpus(QStringLiteral(SOURCE_FOLDER "/../shared/corpus"));
    for (const QString& name : corpus.entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name)) {
      const QString model = corpus.filePath(name + QStringLiteral("/model.onnx"));
      if (QFileInfo::exists(model)) QTest::newRow(qPrintable(name)) << QDir::cleanPath(model);
    }
  }

  void aModelTrainsAsItIsProposed() {
    QFETCH(QString, model);
    WindowDriver w;
    SetUpDialog* dialog = w.open(model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QCOMPARE(fieldOf(*dialog, "data"), QFileInfo(model).dir().filePath(QStringLiteral("batches.npz")));
    const QString reason = labelOf(*dialog, "set_up_data_reason");
    QVERIFY2(reason.contains(QStringLiteral("'batches.npz' lies beside the model")) &&
                 reason.contains(QStringLiteral("Clear it")),
             qPrintable(reason));
    const QString problem = pressBuild(w, *dialog);
    QVERIFY2(problem.isEmpty(), qPrintable(problem));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QCOMPARE(w->store().steps().size(), std::size_t{1});
    QVERIFY(w->store().steps().front()->has_loss() && std::isfinite(w->store().steps().front()->loss()));
    QVERIFY_LOOP(w);
  }

  // The set-up of a model that runs elsewhere than on the CPU, built again, leaves it there.
  void theDeviceStaysWhatItIs() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[0], {{"device", "emulated"}}), w);
    w.loop().act([&] { w->actions()["configure"]->trigger(); });
    SetUpDialog* dialog = shownSetUp(w);
    QVERIFY(dialog);
    auto* device = dialog->findChild<QComboBox*>(QStringLiteral("set_up_device"));
    QCOMPARE(device->currentText(), QStringLiteral("Emulated GPU"));
    QVERIFY(w.loop().wait([&] { return device->findData(QStringLiteral("cuda")) >= 0; }));
    QCOMPARE(device->findData(QStringLiteral("mirror")), -1);
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    const auto valueOf = [&](const char* name) {
      for (const auto& option : w->store().options())
        if (option.name() == name) return QString::fromStdString(option.value());
      return QString();
    };
    QCOMPARE(valueOf("device"), QStringLiteral("emulated"));
    // And goes to the CPU where that is chosen.
    w.loop().act([&] { w->actions()["configure"]->trigger(); });
    dialog = shownSetUp(w);
    device = dialog->findChild<QComboBox*>(QStringLiteral("set_up_device"));
    w.loop().act([&] { device->setCurrentIndex(device->findData(QStringLiteral("cpu"))); });
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    QCOMPARE(valueOf("device"), QStringLiteral("cpu"));
    QVERIFY_DONE(w.act("step_whole"), w);
    QVERIFY_LOOP(w);
  }

  void whatIsClearedStaysClearedAndCanBeTakenBack() {
    WindowDriver w;
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    const QString proposed = fieldOf(*dialog, "data");
    auto* use = dialog->findChild<QPushButton*>(QStringLiteral("set_up_proposed_data"));
    QVERIFY(!use->isVisibleTo(dialog));
    auto* dims = dialog->findChild<QLineEdit*>(QStringLiteral("set_up_dim"));
    QVERIFY2(!dims->isEnabled(), "the data says how long each is");
    w.loop().act([&] { dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear(); });
    QVERIFY(use->isVisibleTo(dialog));
    QVERIFY(dims->isEnabled() == (w->store().model()->dimensions_size() > 0));
    QVERIFY2(labelOf(*dialog, "set_up_data_reason").contains(QStringLiteral("drawn within the ranges")),
             qPrintable(labelOf(*dialog, "set_up_data_reason")));
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(QString::fromStdString(w->store().steps().front()->batch()), QStringLiteral("synthetic"));
    w.loop().act([&] { w->actions()["configure"]->trigger(); });
    SetUpDialog* again = shownSetUp(w);
    QVERIFY(again);
    QCOMPARE(fieldOf(*again, "data"), QString());
    w.loop().act([again] { again->findChild<QPushButton*>(QStringLiteral("set_up_proposed_data"))->click(); });
    QCOMPARE(fieldOf(*again, "data"), proposed);
    again->reject();
    QVERIFY_LOOP(w);
  }

  void extentsThatTheModelFixesAreProposedAndSaid() {
    QString missing;
    const auto model = corpusModel(QStringLiteral("gpt2_lm"), &missing);
    if (!model) QSKIP(qPrintable(missing));
    WindowDriver w;
    SetUpDialog* dialog = w.open(model->model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    w.loop().act([&] { dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear(); });
    const QString reason = labelOf(*dialog, "set_up_dim_reason");
    QVERIFY2(reason.contains(QStringLiteral("sequence is 64 because 128 does not fit")), qPrintable(reason));
    QCOMPARE(dialog->findChild<QLineEdit*>(QStringLiteral("set_up_dim"))->placeholderText(),
             QStringLiteral("batch=2 sequence=64"));
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY_DONE(w.act("step_whole"), w);

    // Another number is tried as it was asked for; the answer names both, and what sets it.
    dialog = w.open(model->model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    w.loop().act([&] {
      dialog->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear();
      dialog->findChild<QLineEdit*>(QStringLiteral("set_up_dim"))->setText(QStringLiteral("sequence=100"));
    });
    const QString problem = pressBuild(w, *dialog);
    QVERIFY2(problem.contains(QStringLiteral("dimension 'sequence' of the synthetic data is 100")) &&
                 problem.contains(QStringLiteral("--dim sequence=64")),
             qPrintable(problem));
    QVERIFY_LOOP(w);
  }

  // The problems of a file are not those of the next one, which is refused before it is read.
  void nothingOfAFileStaysWhenTheNextOneIsRefused() {
    const QTemporaryDir folder;
    QFile whole(bundledModels()[0].model), cut(folder.filePath(QStringLiteral("cut.onnx"))),
        empty(folder.filePath(QStringLiteral("empty.onnx")));
    QVERIFY(whole.open(QIODevice::ReadOnly) && cut.open(QIODevice::WriteOnly) && empty.open(QIODevice::WriteOnly));
    QVERIFY(cut.write(whole.read(whole.size() / 2)) > 0);
    cut.close(), empty.close();
    WindowDriver w;
    const auto shown = [&w] { return shownSetUp(w); };
    const auto refused = [&] {
      w.loop().act([&] { w->openPath(empty.fileName()); });
      return w.loop().wait([&] { return w->notice().text().contains(QStringLiteral("the file is empty")); });
    };
    QVERIFY2(w.open(cut.fileName()), qPrintable(w.failure()));
    QVERIFY(refused());
    QVERIFY(!shown());
    // What is open stays, with its set-up.
    QPointer<SetUpDialog> kept = w.open(whole.fileName());
    QVERIFY2(kept, qPrintable(w.failure()));
    QVERIFY(refused());
    QCOMPARE(shown(), kept.data());
  }

  // Beside a model that is open they are filled in the set-up alone: what is open stays until the other one is built.
  void weightsOfAnotherModelAreFilledInItsSetUp() {
    const QTemporaryDir folder;
    const QString file = modelWithoutWeights(folder);
    QVERIFY(!file.isEmpty());
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    QVERIFY_DONE(w.act("step_whole"), w);
    const auto filled = [&]() -> SetUpDialog* {
      QPointer<SetUpDialog> first = w.open(file);
      auto* fill = first ? first->findChild<QPushButton*>(QStringLiteral("set_up_fill_weights")) : nullptr;
      if (!fill) return nullptr;
      w.loop().act([fill] { fill->click(); });
      SetUpDialog* second = nullptr;
      w.loop().wait([&] {
        for (auto* found : w->findChildren<SetUpDialog*>())
          if (found != first && found->isVisible()) second = found;
        return second != nullptr;
      });
      return second;
    };
    SetUpDialog* second = filled();
    QVERIFY(second && second->findChild<QPushButton*>(QStringLiteral("set_up_build"))->isEnabled());
    QVERIFY(w->session().built() && w->session().modelPath() == bundledModels()[0].model);
    w.loop().act([second] { second->reject(); });
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().position().step(), 2);
    second = filled();
    QVERIFY(second);
    QVERIFY2(pressBuild(w, *second).isEmpty(), qPrintable(w->notice().text()));
    QCOMPARE(w->session().modelPath(), file);
    QVERIFY_DONE(w.act("step_whole"), w);
  }

  // A graph whose weights were left behind can still be looked at.
  void weightsThatAreNotThereAreFilledFromTheSeed() {
    const QTemporaryDir folder;
    const QString file = modelWithoutWeights(folder);
    QVERIFY(!file.isEmpty());
    WindowDriver w;
    SetUpDialog* dialog = w.open(file);
    QVERIFY2(dialog, qPrintable(w.failure()));
    const auto fill = [](SetUpDialog& in) { return in.findChild<QPushButton*>(QStringLiteral("set_up_fill_weights")); };
    QVERIFY(fill(*dialog));
    QVERIFY(!dialog->findChild<QPushButton*>(QStringLiteral("set_up_build"))->isEnabled());
    // Its graph is there; what lacks is one problem.
    QVERIFY(w.loop().wait([&] { return w->store().graph() && w->store().graph()->nodeCount() == 2; }));
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QCOMPARE(w->store().model()->problems_size(), 1);
    const QString lacks = QString::fromStdString(w->store().model()->problems(0).message());
    QVERIFY2(lacks.contains(QStringLiteral("1 of 1 tensors have no data, 'w' first: external data 'w.bin'")),
             qPrintable(lacks));
    QVERIFY(w.settled());
    w.picture(QStringLiteral("weights-not-there"));
    // A build that does not ask is refused with that reason.
    w.loop().act([&] { w->session().build({}); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }) && w.settled());
    QVERIFY2(w->notice().text().contains(lacks), qPrintable(w->notice().text()));
    QVERIFY(!w->session().built() && w->store().graph());
    dialog = nullptr;
    QVERIFY(w.loop().wait([&] {
      for (auto* found : w->findChildren<SetUpDialog*>())
        if (found->isVisible()) dialog = found;
      return dialog != nullptr;
    }));
    QPointer<SetUpDialog> first = dialog;
    w.loop().act([&] { fill(*dialog)->click(); });
    SetUpDialog* second = nullptr;
    QVERIFY(w.loop().wait([&] {
      for (auto* found : w->findChildren<SetUpDialog*>())
        if (found != first && found->isVisible()) second = found;
      return second != nullptr;
    }));
    QVERIFY(!fill(*second));
    QVERIFY2(pressBuild(w, *second).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY_DONE(w.act("step_whole"), w);
    QCOMPARE(w->store().steps().size(), std::size_t{1});
    const auto& alerts = w->store().alerts();
    QVERIFY(std::any_of(alerts.begin(), alerts.end(), [](const auto& alert) { return alert.code() == "missing_weights"; }));
    QVERIFY_LOOP(w);
  }

  void reportsAreOfferedOnceSomethingIsRecorded() {
    WindowDriver w;
    const auto offered = [&w] {
      int enabled = 0;
      for (const char* id : {"report_html", "report_pdf", "report_json", "report_csv", "report_trace"}) {
        const QAction* action = w->actions()[QLatin1String(id)];
        enabled += action->isEnabled();
        if (action->isEnabled() == action->toolTip().contains(QStringLiteral("Nothing was recorded yet"))) return -1;
      }
      return enabled;
    };
    QCOMPARE(offered(), 0);
    SetUpDialog* dialog = w.open(bundledModels()[0].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    QCOMPARE(offered(), 0);
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY(w.recorded());
    QCOMPARE(offered(), 5);
    w.loop().act([&w] { w->session().close(); });
    QCOMPARE(offered(), 0);
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(WatchedApplication, SetUpTest)
#include "tst_set_up.moc"
