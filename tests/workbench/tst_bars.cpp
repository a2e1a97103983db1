// SPDX-License-Identifier: GPL-3.0-or-later
// Status line and toolbar: they stand still while steps follow each other, and say what is so.
#include <QLabel>
#include <QTest>
#include <QToolButton>

#include "app/workbench/status_line.h"
#include "app/workbench/toolbar.h"
#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/running.h"
#include "views/common/tokens.h"
#include "views/open_dialog/set_up_dialog.h"

using namespace stepscope;

namespace {

QWidget* part(QWidget& of, const char* name) { return of.findChild<QWidget*>(QLatin1String(name)); }

}  // namespace

class BarsTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    applyTheme(*qApp, Theme::kLight);
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
  }

  void theStatusLineStandsStillWhileStepsFollowEachOther() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    SnapshotStore store;
    SelectionModel selection;
    store.setGraph(w->store().graph());
    store.setPlan(w->store().plan());
    StatusLine line(store, selection);
    line.resize(1280, line.height());
    line.show();
    const auto label = [&](const char* name) { return line.findChild<QLabel*>(QLatin1String(name)); };
    snapshot::Position inside;
    inside.set_in_step(true);
    inside.set_step(10);
    inside.set_instruction(store.plan()->size() - 1);  // as wide as it becomes, with its phase
    snapshot::Position between;
    between.set_step(11);
    Running::of(store).set(true);
    store.setWorkerState(WorkerState::kBusy, QStringLiteral("finishing the step"));
    store.setPosition(inside);
    // Nothing is cut, not even before the loop comes to the layout.
    for (const char* name : {"status_where", "status_phase", "status_step", "status_worker"})
      QVERIFY2(label(name)->width() >= label(name)->sizeHint().width(), name);
    QVERIFY2(label("status_where")->text().contains(QStringLiteral("step 10")), qPrintable(label("status_where")->text()));
    const QString worker = label("status_worker")->text();
    const int peak = label("status_peak")->x();
    store.setWorkerState(WorkerState::kIdle, {});
    store.setPosition(between);
    QVERIFY2(label("status_where")->text().contains(QStringLiteral("step 11")), qPrintable(label("status_where")->text()));
    QCOMPARE(label("status_worker")->text(), worker);
    QCOMPARE(label("status_peak")->x(), peak);
    // At full speed steps come before the worker says where it stands: the number shown is that of the step that runs, and
    // the loss names its own.
    auto ended = std::make_shared<snapshot::StepRecord>();
    ended->set_step(13);
    ended->set_has_loss(true);
    ended->set_loss(0.5);
    store.addStep(ended);
    QTRY_VERIFY2(label("status_where")->text().contains(QStringLiteral("step 14")),
                 qPrintable(label("status_where")->text()));
    QVERIFY2(label("status_loss")->text().endsWith(QStringLiteral("of step 13")), qPrintable(label("status_loss")->text()));
    QVERIFY(label("status_step")->isHidden());
    // A field that came keeps its place until the run ends, with or without a text.
    const int withLoss = label("status_peak")->x();
    QVERIFY(withLoss > peak);
    store.takeBackFrom(0);
    QVERIFY(label("status_loss")->text().isEmpty());
    QCOMPARE(label("status_peak")->x(), withLoss);
    inside.set_step(11);
    inside.set_instruction(0);
    store.setPosition(inside);  // fewer digits
    QCOMPARE(label("status_peak")->x(), withLoss);
    Running::of(store).set(false);
    store.setPosition(between);
    QVERIFY2(label("status_where")->text().contains(QStringLiteral("Ready")), qPrintable(label("status_where")->text()));
    QVERIFY(label("status_phase")->isHidden());
  }

  // A rewind beyond the steps whose records are kept leaves the loss of the step before, not that of an older record.
  void afterARewindTheLossIsOfTheStepBefore() {
    SnapshotStore store;
    SelectionModel selection;
    StatusLine line(store, selection);
    const auto* loss = line.findChild<QLabel*>(QStringLiteral("status_loss"));
    for (int step = 0; step < 4'000; ++step) {
      auto record = std::make_shared<snapshot::StepRecord>();
      record->set_step(step);
      record->set_has_loss(true);
      record->set_loss(step * 0.001);
      if (step == 7) record->mutable_row_losses()->add_values(1);  // kept for what it recorded
      store.addStep(record);
    }
    store.takeBackFrom(300);
    QTRY_VERIFY2(loss->toolTip().endsWith(QStringLiteral("of step 299")), qPrintable(loss->toolTip()));
    QVERIFY2(loss->text().contains(QStringLiteral("0.299")), qPrintable(loss->text()));
  }

  // What is said has its dots where it does not fit, also when its place gets smaller while it stands.
  void aNoteIsElidedWhereItsPlaceGetsSmaller() {
    SnapshotStore store;
    SelectionModel selection;
    StatusLine line(store, selection);
    const auto* note = line.findChild<QLabel*>(QStringLiteral("status_note"));
    line.resize(1600, line.height());
    line.show();
    const QString text = QString(80, 'x');
    line.note(text);
    QCOMPARE(note->text(), text);
    line.resize(300, line.height());
    QTRY_VERIFY2(note->text().endsWith(QStringLiteral("…")), qPrintable(note->text()));
    line.resize(1600, line.height());
    QTRY_COMPARE(note->text(), text);
  }

  void aStepWalkedThroughByHandHasNoSpeed() {
    SnapshotStore store;
    SelectionModel selection;
    StatusLine line(store, selection);
    const auto speed = [&line] { return line.findChild<QLabel*>(QStringLiteral("status_speed"))->text(); };
    int padded = 0;
    const auto add = [&](int number, std::int64_t ns) {
      auto step = std::make_shared<snapshot::StepRecord>();
      auto& density = *step->add_densities();
      density.set_kind("mask");
      density.set_valid(128 - padded);
      density.set_total(128);
      step->set_step(number);
      step->set_tokens(128);
      step->set_ns(ns);
      step->add_spans()->set_end_ns(50'000'000);
      store.addStep(step);
    };
    add(0, 60'000'000);
    QVERIFY2(speed().contains(QStringLiteral("2.13 k</span> tokens/s")), qPrintable(speed()));
    QVERIFY2(!speed().contains(QStringLiteral("padding")), qPrintable(speed()));
    add(1, 90'000'000'000);
    QVERIFY2(speed().isEmpty(), qPrintable(speed()));
    // Half of the batch is padding: nothing is trained on it.
    add(2, 60'000'000);
    const int narrow = line.minimumSizeHint().width();
    padded = 64;
    add(3, 30'000'000);
    QVERIFY2(speed().contains(QStringLiteral("2.13 k</span> tokens/s, 50.0 % padding")), qPrintable(speed()));
    QCOMPARE(line.minimumSizeHint().width(), narrow);
  }

  // With ".json" it would be the other report.
  // The buttons beside Run do not move when it becomes Pause.
  void runAndPauseAreOfOneWidth() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[0]));
    auto* toolbar = w->findChild<Toolbar*>();
    auto* run = static_cast<QToolButton*>(part(*toolbar, "tool_run"));
    auto* step = part(*toolbar, "tool_step");
    const int before = step->x();
    w.loop().act([&] { w->session().run(false); });
    QVERIFY(w.loop().wait([&] { return run->defaultAction() == w->actions()[QStringLiteral("stop")]; }));
    QCOMPARE(step->x(), before);
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    QCOMPARE(run->defaultAction(), w->actions()[QStringLiteral("run")]);
    QCOMPARE(step->x(), before);
  }

  void deviceAndPrecisionStandInTheToolbarAndLeadToTheSetUp() {
    WindowDriver w(QSize(1600, 1000));
    auto* device = static_cast<LabelButton*>(part(*w, "tool_device"));
    QVERIFY(device->isHidden());
    QVERIFY(w.build(bundledModels()[0]));
    QVERIFY(!device->isHidden());
    QCOMPARE(device->value(), QStringLiteral("CPU · fp32"));
    auto options = w->store().options();
    for (auto& o : options)
      if (o.name() == "precision") o.set_value("bf16");
    w->store().setOptions(options);
    QCOMPARE(device->value(), QStringLiteral("CPU · bf16"));
    QCOMPARE(w->findChild<QLabel*>(QStringLiteral("status_device"))->text(), QStringLiteral("CPU · bf16"));
    w.loop().act([&] { device->click(); });
    QVERIFY(w.loop().wait([&] {
      auto* dialog = w->findChild<SetUpDialog*>();
      return dialog && dialog->isVisible();
    }));
    w->findChild<SetUpDialog*>()->reject();
    w.loop().act([&] { w->resize(1280, 800); });
    // What does not fit with its label has an icon in its place; nothing goes without a mark.
    QVERIFY(!device->isHidden());
    for (const char* step : {"tool_step", "tool_step_phase", "tool_step_whole"})
      QVERIFY2(static_cast<QToolButton*>(part(*w, step))->toolButtonStyle() == Qt::ToolButtonTextBesideIcon, step);
    QCOMPARE(w->size(), QSize(1280, 800));
    // A note takes nobody's room.
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::INFO);
    w->store().addAlert(alert);
    QVERIFY(w.settled() && !device->isHidden());
    w.picture(QStringLiteral("toolbar-note"));
    w->store().clearAlerts();
    for (auto& o : options)
      if (o.name() == "device") o.set_value("emulated");
    w->store().setOptions(options);
    QVERIFY(w.settled());
    QCOMPARE(device->value(), QStringLiteral("Emulated · bf16"));
    for (const char* step : {"tool_step", "tool_step_phase", "tool_step_whole", "tool_run_here"})
      QVERIFY2(static_cast<QToolButton*>(part(*w, step))->toolButtonStyle() == Qt::ToolButtonTextBesideIcon, step);
    w.picture(QStringLiteral("toolbar-emulated"));
    alert.set_severity(snapshot::Alert::WARNING);
    w->store().addAlert(alert);
    QVERIFY(w.settled());
    QVERIFY(static_cast<QToolButton*>(part(*w, "tool_run_here"))->toolButtonStyle() == Qt::ToolButtonTextBesideIcon);
    w.picture(QStringLiteral("toolbar-emulated-alert"));
    QCOMPARE(w->size(), QSize(1280, 800));
    w.loop().act([&] { w->resize(1024, 700); });
    w->store().setOptions(w->store().options());
    QVERIFY(w.settled());
    QCOMPARE(w->size(), QSize(1024, 700));
  }

  // However much room the words of the toolbar left.
  void anAlertNeverWidensTheWindow() {
    WindowDriver w({1280, 800});
    QVERIFY_DONE(w.build(bundledModels()[0]), w);
    snapshot::Alert alert;
    alert.set_severity(snapshot::Alert::ERROR);
    for (int width = 1040; width <= 1480; width += 20) {
      w.loop().act([&] { w->store().clearAlerts(); });
      w.loop().act([&] { w->resize(width, 800); });
      QVERIFY(w.settled());
      QCOMPARE(w->width(), width);
      w.loop().act([&] { w->store().addAlert(alert); });
      QVERIFY(w.settled());
      QCOMPARE(w->width(), width);
    }
  }
};

SS_QT_CLASS(QApplication, BarsTest)
#include "tst_bars.moc"
