// SPDX-License-Identifier: GPL-3.0-or-later
// Opening a model by hand, with the real worker: what is proposed trains as it stands, can be changed, and says what does
// not fit.
#include <QAction>
#include <QComboBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QPushButton>
#include <QScopeGuard>
#include <QSplitter>
#include <QTemporaryDir>
#include <QTemporaryFile>
#include <QTest>
#include <QToolButton>
#include <algorithm>
#include <cmath>

#include "app/workbench/actions.h"
#include "app/workbench/panel_board.h"
#include "tests/workbench/window_driver.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

QString fieldOf(const SetUpDialog& dialog, const char* name) {
  return dialog.findChild<QLineEdit*>(QStringLiteral("set_up_") + QLatin1String(name))->text();
}

QString labelOf(const SetUpDialog& dialog, const char* name) {
  return dialog.findChild<QLabel*>(QLatin1String(name))->text();
}

// Presses Build and waits; what stands in the way otherwise.
QString pressBuild(WindowDriver& w, SetUpDialog& dialog) {
  auto* button = dialog.findChild<QPushButton*>(QStringLiteral("set_up_build"));
  if (!button->isEnabled()) return QStringLiteral("the set-up does not build");
  w.loop().act([button] { button->click(); });
  if (!w.loop().wait([&] { return (w->session().built() && !w->session().busy()) || w->notice().isProblem(); }))
    return QStringLiteral("nothing came");
  return w->notice().isProblem() ? w->notice().text() : w.settled() ? QString() : QStringLiteral("it did not settle");
}

}  // namespace

class SetUpTest : public QObject {
  Q_OBJECT

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
    w.loop().act([&] { w->findChild<SetUpDialog*>()->reject(); });
    QVERIFY(w.loop().wait([&] { return board->width() > 1200; }));
    QCOMPARE(widthOf("instructions"), dragged);
    QVERIFY_LOOP(w);
  }

  // The first build exceeds memory.limit: the set-up comes back with the error, and with a way to fit.
  void aFirstBuildThatDoesNotFitIsOfferedToFit() {
    WindowDriver w;
    SetUpDialog* dialog = w.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(w.failure()));
    // What it needs, from a build without a limit.
    QVERIFY2(pressBuild(w, *dialog).isEmpty(), qPrintable(w->notice().text()));
    const auto need = [&] { return w->store().plan()->plan().persistent_bytes() + w->store().plan()->plan().arena_bytes(); };
    const std::int64_t limit = need() - w->store().plan()->plan().arena_bytes() / 8;
    WindowDriver again;
    dialog = again.open(bundledModels()[1].model);
    QVERIFY2(dialog, qPrintable(again.failure()));
    const auto fieldThere = [&] { return dialog->findChild<QLineEdit*>(QStringLiteral("set_up_more_memory.limit")); };
    QVERIFY(again.loop().wait([&] { return fieldThere() != nullptr; }));
    again.loop().act([&] { fieldThere()->setText(QString::number(limit)); });
    QVERIFY(!pressBuild(again, *dialog).isEmpty());
    const auto fitButton = [&] { return again->findChild<QPushButton*>(QStringLiteral("set_up_fit")); };
    QVERIFY(again.loop().wait([&] { return fitButton() && fitButton()->isVisible(); }));
    QVERIFY(again.settled());
    again.picture(QStringLiteral("set-up-does-not-fit"));
    again.loop().act([&] { fitButton()->click(); });
    QVERIFY(again.loop().wait([&] {
      return again->session().built() && !again->session().busy() && again->store().plan() &&
             again->store().plan()->plan().persistent_bytes() + again->store().plan()->plan().arena_bytes() <= limit;
    }));
    QVERIFY(again.settled());
    QString kept;
    for (const auto& option : again->store().options())
      if (option.name() == "memory.limit") kept = QString::fromStdString(option.value());
    QCOMPARE(kept, QString::number(limit));
    QVERIFY_DONE(again.act("step_whole"), again);
    QVERIFY2(!again->notice().isProblem(), qPrintable(again->notice().text()));
    QCOMPARE(again->store().steps().size(), std::size_t{1});
    again.picture(QStringLiteral("set-up-fits"));
  }

  // Esc while the settings are on their way is meant for the build that follows them. The set-up is there again as it was
  // filled in; what was built before is.
  void aCancelBeforeTheBuildBeginsEndsIt() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    qputenv("FAKE_CONFIGURE_MS", "300");
    const auto back = qScopeGuard([] {
      qputenv("STEPSCOPE_WORKER", REAL_WORKER);
      qunsetenv("FAKE_CONFIGURE_MS");
    });
    QTemporaryFile model(QDir::tempPath() + QStringLiteral("/made_up_XXXXXX.onnx"));  // the made-up worker does not read it
    QVERIFY(model.open() && model.write("model") > 0 && model.flush());
    WindowDriver w;
    SetUpDialog* dialog = w.open(model.fileName());
    QVERIFY2(dialog, qPrintable(w.failure()));
    const auto shown = [&w] {
      SetUpDialog* found = nullptr;
      for (auto* each : w->findChildren<SetUpDialog*>())
        if (each->isVisible()) found = each;
      return found;
    };
    const auto field = [](SetUpDialog* of) { return of->findChild<QLineEdit*>(QStringLiteral("set_up_accumulate")); };
    const auto begin = [&](SetUpDialog* of) {
      w.loop().act([of] { of->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
      return w->store().building() && w->session().busy();
    };
    const auto escape = [&] { w.loop().act([&] { QTest::keyClick(&*w, Qt::Key_Escape); }); };
    auto* run = w->findChild<QToolButton*>(QStringLiteral("tool_run"));
    field(dialog)->setText(QStringLiteral("3"));
    QVERIFY(begin(dialog));
    QCOMPARE(run->defaultAction(), w->actions()[QStringLiteral("stop")]);
    QVERIFY(run->isEnabled());
    escape();
    QVERIFY(w.settled());
    QVERIFY(!w->session().built() && !w->store().building());
    QCOMPARE(run->defaultAction(), w->actions()[QStringLiteral("run")]);
    QVERIFY(w.loop().wait([&] { return shown() != nullptr; }));
    QCOMPARE(field(shown())->text(), QStringLiteral("3"));
    QVERIFY(begin(shown()));
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }) && w.settled());
    QVERIFY(!shown());

    // Another set-up, cancelled, and impatiently so: what was built is built again, whatever is pressed then.
    QVERIFY_DONE(w.act("step"), w);
    QVERIFY(w.act("configure"));
    field(shown())->setText(QStringLiteral("4"));
    QVERIFY(begin(shown()));
    escape();
    QVERIFY(w.loop().wait([&] { return w->session().comingBack(); }));
    escape();
    QVERIFY(w.settled());
    QVERIFY(w->session().built() && !w->store().building() && !w->session().comingBack());
    QVERIFY(shown());
    QCOMPARE(field(shown())->text(), QStringLiteral("4"));
    const auto& settings = w->session().configuration().settings();
    const auto it = std::find_if(settings.begin(), settings.end(), [](const auto& s) { return s.name() == "accumulate"; });
    QVERIFY(it != settings.end());
    QCOMPARE(it->value(), std::string("3"));
    QCOMPARE(w.instruction(), 1);
    QVERIFY_DONE(w.act("step"), w);
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

  // Whenever Esc comes and whatever has the keyboard: the set-up is there again as it was filled in, and what was built
  // before stands where it stood. A build that ended before is kept.
  void aCancelledRebuildComesBackToItsSetUp_data() {
    QTest::addColumn<int>("afterMs");
    QTest::addColumn<QString>("focus");
    for (const int ms : {0, 15, 40, 90})
      for (const char* focus : {"", "tool_run"})
        QTest::addRow("%d ms, %s", ms, *focus ? focus : "none") << ms << QString::fromLatin1(focus);
  }

  void aCancelledRebuildComesBackToItsSetUp() {
    QFETCH(int, afterMs);
    QFETCH(QString, focus);
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    for (int i = 0; i < 2; ++i) QVERIFY_DONE(w.act("step"), w);
    const auto shown = [&w] {
      SetUpDialog* found = nullptr;
      for (auto* each : w->findChildren<SetUpDialog*>())
        if (each->isVisible()) found = each;
      return found;
    };
    const auto arena = [&w] { return w->store().plan()->plan().arena_bytes(); };
    const auto before = arena();
    QVERIFY(w.act("configure"));
    QPointer<SetUpDialog> first = shown();
    QWidget* has = focus.isEmpty() ? &*w : w->findChild<QWidget*>(focus);
    QVERIFY(has);
    bool pressed = false;
    const auto escape = [&] {
      pressed = true;
      has->setFocus();
      QTest::keyClick(has, Qt::Key_Escape);
    };
    w.loop().act([&] {
      first->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear();
      first->findChild<QLineEdit*>(QStringLiteral("set_up_dim"))->setText(QStringLiteral("batch=3"));
      first->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click();
      if (afterMs == 0) escape();
    });
    QElapsedTimer since;
    since.start();
    QVERIFY(w.loop().wait([&] { return pressed || since.elapsed() >= afterMs; }));
    if (!pressed && w->store().building()) w.loop().act(escape);
    QVERIFY(w.settled());
    QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
    QVERIFY(w->session().built() && !w->store().building());
    if (arena() != before) QSKIP("it was built before Esc came");
    QVERIFY(w.loop().wait([&] { return shown() && shown() != first; }));
    QCOMPARE(fieldOf(*shown(), "dim"), QStringLiteral("batch=3"));
    QCOMPARE(fieldOf(*shown(), "data"), QString());
    QCOMPARE(w.instruction(), 2);
    QVERIFY2(pressBuild(w, *shown()).isEmpty(), qPrintable(w->notice().text()));
    QVERIFY(arena() != before && !shown());
    QVERIFY_DONE(w.act("step_whole"), w);
  }

  // Esc comes at once, before the worker knows of the build. The set-up is there again as it was filled in, and what was
  // built before runs on; Build pressed before it is back waits for it.
  void aBuildBeforeTheWayBackEndedIsNotLost() {
    WindowDriver w;
    QVERIFY_DONE(w.build(bundledModels()[1]), w);
    const auto before = w->store().plan()->plan().arena_bytes();
    const auto shown = [&w] {
      SetUpDialog* found = nullptr;
      for (auto* each : w->findChildren<SetUpDialog*>())
        if (each->isVisible()) found = each;
      return found;
    };
    QVERIFY(w.act("configure"));
    QPointer<SetUpDialog> first = shown();
    w.loop().act([&] {
      first->findChild<QLineEdit*>(QStringLiteral("set_up_data"))->clear();
      first->findChild<QLineEdit*>(QStringLiteral("set_up_dim"))->setText(QStringLiteral("batch=3"));
      first->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click();
      QTest::keyClick(&*w, Qt::Key_Escape);
    });
    QVERIFY(w.loop().wait([&] { return shown() && shown() != first; }));
    QVERIFY(w->session().busy());
    QVERIFY2(shown()->isAncestorOf(QApplication::focusWidget()) || shown() == QApplication::focusWidget(),
             "it can be typed in");
    w.loop().act([&] { shown()->findChild<QPushButton*>(QStringLiteral("set_up_build"))->click(); });
    QVERIFY(w.settled());
    QVERIFY(w.loop().wait([&] { return w->store().plan()->plan().arena_bytes() != before && !w->session().busy(); }));
    QVERIFY(!shown());
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
    SetUpDialog* dialog = nullptr;
    for (auto* found : w->findChildren<SetUpDialog*>())
      if (found->isVisible()) dialog = found;
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
    for (auto* found : w->findChildren<SetUpDialog*>())
      if (found->isVisible()) dialog = found;
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
    SetUpDialog* again = nullptr;
    for (auto* found : w->findChildren<SetUpDialog*>())
      if (found->isVisible()) again = found;
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
    const auto shown = [&w] {
      SetUpDialog* found = nullptr;
      for (auto* each : w->findChildren<SetUpDialog*>())
        if (each->isVisible()) found = each;
      return found;
    };
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

  // A graph whose weights were left behind can still be looked at.
  void weightsThatAreNotThereAreFilledFromTheSeed() {
    // loss = mean(x · w), w in the file w.bin.
    const QByteArray model = QByteArray::fromHex(
        "080812003a83010a110a01780a017712017922064d61744d756c0a260a017912046c6f7373220a5265647563654d65616e2a0f0a086b6565706"
        "4696d731800a001021201672a1e0803080410014201776a11"
        "0a086c6f636174696f6e1205772e62696e70015a130a0178120e0a0c080112080a0208020a020803620e0a046c6f737312060a0408011200420"
        "40a001011");
    const QTemporaryDir folder;
    QFile file(folder.filePath(QStringLiteral("model.onnx")));
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write(model) == model.size());
    file.close();
    WindowDriver w;
    SetUpDialog* dialog = w.open(file.fileName());
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

int main(int argc, char** argv) {
  WatchedApplication app(argc, argv);
  SetUpTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "tst_set_up.moc"
