// SPDX-License-Identifier: GPL-3.0-or-later
// The Recompute view with the real worker: what it shows, what it applies, and what a wrong plan says.
#include <QAbstractItemModelTester>
#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSlider>
#include <QTableView>
#include <QTest>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/tokens.h"
#include "views/recompute/pareto_plot.h"
#include "views/recompute/pattern_model.h"
#include "views/recompute/plan_entries.h"

using namespace stepscope;

namespace {

// The view in the window that the driver holds, once it has something to show.
struct Recompute {
  WindowDriver& w;
  View* view;
  QTableView* table;
  QLineEdit* plan;
  QPushButton* apply;
  QSlider* slider;

  explicit Recompute(WindowDriver& driver) : w(driver) {
    w.loop().act([&] { w->applyLayout(QStringLiteral("Memory")); });
    view = w.view(QStringLiteral("recompute"));
    table = view->findChild<QTableView*>(QStringLiteral("recompute_table"));
    plan = view->findChild<QLineEdit*>(QStringLiteral("recompute_plan"));
    apply = view->findChild<QPushButton*>(QStringLiteral("recompute_apply"));
    slider = view->findChild<QSlider*>(QStringLiteral("recompute_budget"));
  }
  const std::shared_ptr<const snapshot::RecomputeReport>& report() const { return w->store().findings().recompute(); }
  bool judged() const {
    return w.loop().wait([this] { return report() && table->model()->rowCount() == report()->patterns_size(); });
  }
  // The answer is about what stands in the view.
  bool answered() const {
    return w.loop().wait([this] {
      const RecomputeAnswer& answer = w->store().findings().recomputeAnswer();
      return answer.whatIf && answer.plan == plan->text() && w->session().client().openRequests() == 0;
    });
  }
  bool says(const QString& text) const {
    return w.loop().wait(
        [&] {
          const auto labels = view->findChildren<QLabel*>();
          return std::any_of(labels.begin(), labels.end(),
                             [&](const QLabel* label) { return label->isVisible() && label->text().contains(text); });
        },
        10'000);
  }
  // Row of the candidate that saves most.
  QModelIndex best() const {
    for (int r = 0; r < table->model()->rowCount(); ++r)
      if (table->model()->index(r, PatternModel::kPattern).data().toString() ==
          QString::fromStdString(report()->patterns(0).pattern()))
        return table->model()->index(r, PatternModel::kPattern);
    return {};
  }
};

}  // namespace

class RecomputeTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() { applyTheme(*qApp, Theme::kLight); }
  void init() { qputenv("STEPSCOPE_WORKER", REAL_WORKER); }

  void plansAreReadAndWritten() {
    using Entries = std::map<QString, qint64>;
    QCOMPARE(planEntries(QStringLiteral(" Gelu+ :1:-1 ,Cast+Mul+:1:2,block:0:-1")),
             (Entries{{"Gelu+", -1}, {"Cast+Mul+", 2}, {"block", 0}}));
    QCOMPARE(planEntries(QStringLiteral("Gelu+,:1:1,Gelu+:2:1,Gelu+:1:many,Gelu+:1:-2")), Entries{});
    QCOMPARE(withPlanEntry(QStringLiteral("Gelu+:1:2, block:1:1"), QStringLiteral("Gelu+"), -1),
             QStringLiteral("block:1:1,Gelu+:1:-1"));
    QCOMPARE(withPlanEntry(QStringLiteral("Gelu+:1:2"), QStringLiteral("Gelu+"), 0), QString());
    QCOMPARE(withPlanEntry(QStringLiteral("broken"), QStringLiteral("Gelu+"), 1), QStringLiteral("broken,Gelu+:1:1"));
  }

  void thePatternsKeepTheirPromises() {
    PatternModel model;
    QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    auto report = std::make_shared<snapshot::RecomputeReport>();
    for (const char* name : {"Gelu+", "block"}) {
      auto* p = report->add_patterns();
      p->set_pattern(name);
      p->set_occurrences(4);
      p->set_saved_bytes(1 << 20);
      p->set_saved_arena_bytes(1 << 20);
      p->set_cost_ns(2e6);
      p->set_nodes(4);
      p->set_measured_nodes(4);
    }
    model.setReport(report);
    const QModelIndex box = model.index(0, PatternModel::kPattern);
    QCOMPARE(box.data(Qt::CheckStateRole).toInt(), int(Qt::Unchecked));
    QCOMPARE(model.index(0, PatternModel::kRatio).data().toString(), QStringLiteral("512 KiB/ms"));
    QString asked;
    connect(&model, &PatternModel::ticked, this,
            [&](const QString& pattern, bool on) { asked = pattern + (on ? u'+' : u'-'); });
    QVERIFY(model.setData(box, Qt::Checked, Qt::CheckStateRole));
    QCOMPARE(asked, QStringLiteral("Gelu++"));
    model.setChosen({{QStringLiteral("Gelu+"), -1}, {QStringLiteral("block"), 2}});
    QCOMPARE(box.data(Qt::CheckStateRole).toInt(), int(Qt::Checked));
    QCOMPARE(model.index(1, PatternModel::kPattern).data(Qt::CheckStateRole).toInt(), int(Qt::PartiallyChecked));
    QCOMPARE(model.index(1, PatternModel::kCount).data().toString(), QStringLiteral("2 of 4"));
    model.setReadOnly(true);
    QVERIFY(!model.setData(box, Qt::Unchecked, Qt::CheckStateRole));
    model.setReport(nullptr);
    QCOMPARE(model.rowCount(), 0);
  }

  // Estimates, one cold step, and what ran under a plan before the present one never look like medians of warm steps.
  void thePlotTellsWhatItsTimesAre() {
    ParetoPlot plot;
    auto report = std::make_shared<snapshot::RecomputeReport>();
    for (int i = 0; i < 2; ++i) {
      auto* point = report->add_curve();
      point->set_peak_bytes((600 - 100 * i) << 10);
      point->set_step_ns(1e5);
    }
    for (const bool present : {false, true}) {
      auto* run = report->add_runs();
      run->set_peak_bytes(500 << 10);
      run->set_median_ns(8e5);
      run->set_min_ns(7e5);
      run->set_max_ns(9e5);
      run->set_steps(4);
      run->set_newest(1'700'000'000'000'000'000);
      run->set_present(present);
    }
    const auto shown = [&] {
      plot.setReport(std::make_shared<snapshot::RecomputeReport>(*report));
      QStringList names;
      for (int i = 0; i < 3; ++i)
        if (plot.graph(i)->dataCount() > 0) names << plot.graph(i)->name();
      return names.join(QStringLiteral(" | "));
    };
    QCOMPARE(shown(), QStringLiteral("estimate: the least time"));
    QCOMPARE(plot.graph(0)->pen().style(), Qt::DashLine);
    QCOMPARE(costBasis(*report), QStringLiteral("costs estimated"));
    report->set_measured(true);
    report->set_cold(true);
    report->set_timed_steps(1);
    report->mutable_runs(1)->set_cold(true);
    QCOMPARE(shown(), QStringLiteral("predicted from 1 step, cold | ran before | runs now: 1 step, cold"));
    QCOMPARE(costBasis(*report), QStringLiteral("costs of 1 step, cold"));
    report->set_cold(false);
    report->set_timed_steps(4);
    report->mutable_runs(0)->set_cold(true);
    report->mutable_runs(1)->set_cold(false);
    QCOMPARE(shown(), QStringLiteral("predicted | runs now"));
    QCOMPARE(plot.graph(0)->pen().style(), Qt::SolidLine);
    QCOMPARE(costBasis(*report), QStringLiteral("costs of 4 steps"));
  }

  // Beside the set-up the panel is narrow: nothing is drawn over its controls.
  void thePlotGivesWayInANarrowPanel() {
    WindowDriver w({1280, 800});
    QVERIFY(w.build(bundledModels()[1]));
    const View* view = w.view(QStringLiteral("recompute"));
    const auto* plot = view->findChild<ParetoPlot*>();
    QVERIFY(plot && plot->isVisible());
    QVERIFY_DONE(w.act("configure"), w);
    QVERIFY(w.loop().wait([&] { return view->width() < 500; }) && w.settled());
    QVERIFY(!plot->isVisible());
    auto* scroll = view->findChild<QScrollArea*>();
    QVERIFY(scroll);
    for (QPushButton* button : scroll->findChildren<QPushButton*>()) {
      if (!button->isVisible()) continue;
      w.loop().act([&] { scroll->ensureWidgetVisible(button); });
      QVERIFY2(button->visibleRegion().boundingRect() == button->rect(), qPrintable(button->text()));
    }
    w.picture(QStringLiteral("recompute-beside-the-set-up"));
  }

  void aTickedPatternLowersThePeakAndChangesNoBit() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[1]));
    for (int i = 0; i < 3; ++i) QVERIFY(w.act("step_whole"));
    Recompute r(w);
    QVERIFY(r.judged());
    QVERIFY(r.report()->measured());
    QVERIFY(!r.apply->isEnabled());
    QVERIFY(r.best().isValid() && r.report()->patterns(0).saved_bytes() > 0);
    const std::int64_t before = r.report()->plain_peak_bytes(), planned = w->store().plan()->plan().lower_bound_bytes();
    const std::string pattern = r.report()->patterns(0).pattern();

    w.loop().act([&] { r.table->model()->setData(r.best(), Qt::Checked, Qt::CheckStateRole); });
    QCOMPARE(r.plan->text(), QString::fromStdString(pattern) + QStringLiteral(":1:-1"));
    QVERIFY(r.answered());
    const std::int64_t predicted = r.report()->what_if().peak_bytes();
    QCOMPARE(predicted, before - r.report()->patterns(0).saved_bytes());
    QVERIFY(r.says(QStringLiteral("Arena ")));
    QVERIFY(r.apply->isEnabled());

    w.loop().act([&] { r.apply->click(); });
    QVERIFY(w.settled());
    QVERIFY2(r.says(QStringLiteral("bits equal")), qPrintable(w->notice().text()));
    QVERIFY(w->store().findings().optionProof()->equal());
    // The controls and the proof are there in full: the table gives way first.
    w.loop().act([&] { w->applyLayout(QStringLiteral("Memory")); });
    w.loop().act([&] { w->board().show(QStringLiteral("recompute")); });
    QVERIFY(w.settled());
    const auto* proof = r.view->findChild<QLabel*>(QStringLiteral("recompute_proof"));
    for (const QWidget* part : {static_cast<const QWidget*>(r.slider), static_cast<const QWidget*>(r.plan),
                                static_cast<const QWidget*>(r.apply), static_cast<const QWidget*>(proof)})
      QVERIFY2(part->visibleRegion().boundingRect() == part->rect(),
               qPrintable(QStringLiteral("%1 of %2 px").arg(part->y()).arg(r.view->height())));
    QVERIFY(r.table->height() >= 4 * r.table->fontMetrics().height());
    QVERIFY(w->store().plan()->plan().lower_bound_bytes() < planned);
    QVERIFY(w.act("step_whole"));
    QVERIFY(w.act("step_whole"));
    // Both plans have been measured, and the one that runs is as low as was predicted.
    QVERIFY(w.loop().wait([&] { return r.report()->runs_size() == 2 && w->session().client().openRequests() == 0; }));
    QCOMPARE(r.report()->present_peak_bytes(), predicted);
    QCOMPARE(r.report()->patterns_size() > 0 && w->store().plan()->plan().lower_bound_bytes() < planned, true);

    // Taken back as any change.
    QVERIFY(w.act("undo"));
    QCOMPARE(w->store().plan()->plan().lower_bound_bytes(), planned);
    QCOMPARE(r.plan->text(), QString());
    QVERIFY(r.says(QStringLiteral("bits equal")));
  }

  void aBudgetIsSlidAndAppliedInTheMiddleOfAStep() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[1]));
    Recompute r(w);
    QVERIFY(r.judged());
    QVERIFY(!r.report()->measured());
    QVERIFY(w.act("step"));  // in the middle of a step
    QVERIFY(r.judged() && r.slider->maximum() > 0);
    const auto planned = w->store().plan()->plan().lower_bound_bytes();
    w.loop().act([&] { r.slider->setValue(0); });
    QVERIFY(r.answered());
    QVERIFY(r.report()->what_if().peak_bytes() < r.report()->plain_peak_bytes());
    w.loop().act([&] { r.apply->click(); });
    QVERIFY(w.settled());
    QCOMPARE(w.instruction(), 1);
    QVERIFY(w->store().position().in_step());
    QVERIFY(w->store().plan()->plan().lower_bound_bytes() < planned);
    QVERIFY(w->store().findings().optionProof() && w->store().findings().optionProof()->equal());
  }

  // What the field can ask for and the plan cannot do is told with the least, and not as a success.
  void aBudgetThatCannotBeReachedIsSaid() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[1]));
    for (int i = 0; i < 2; ++i) QVERIFY(w.act("step_whole"));
    Recompute r(w);
    QVERIFY(r.judged());
    auto* field = r.view->findChild<QLineEdit*>(QStringLiteral("recompute_budget_text"));
    const auto* note = w->findChild<QLabel*>(QStringLiteral("status_note"));
    w.loop().act([&] {
      field->setFocus();
      field->selectAll();
      QTest::keyClicks(field, QStringLiteral("4096"));
      QTest::keyClick(field, Qt::Key_Return);
    });
    const auto least = r.report()->curve(r.report()->curve_size() - 1).peak_bytes();
    QVERIFY(r.says(
        QStringLiteral("Applied. The budget of 4.00 KiB cannot be reached: %1 is the least").arg(format::bytes(least))));
    const auto* proof = r.view->findChild<QLabel*>(QStringLiteral("recompute_proof"));
    QVERIFY(w.loop().wait([&] { return proof->text().contains(QStringLiteral("bits equal")); }));
    QVERIFY(proof->property("role").toString() != QStringLiteral("ok"));
    const auto& made = w->store().findings().optionProof();
    QCOMPARE(made->after_peak_bytes(), least);
    // What was bought: the arena, workspaces included, as Saves counts it.
    QVERIFY(made->after_arena_bytes() < made->before_arena_bytes());
    QVERIFY(made->after_arena_bytes() >= made->after_peak_bytes());
    const QString arena = QStringLiteral("arena %1 → %2, peak of values %3 → %4")
                              .arg(format::bytes(made->before_arena_bytes()), format::bytes(made->after_arena_bytes()),
                                   format::bytes(made->before_peak_bytes()), format::bytes(made->after_peak_bytes()));
    QVERIFY2(proof->text().contains(arena), qPrintable(proof->text()));
    QVERIFY2(!note->text().contains(QStringLiteral("4096")), qPrintable(note->text()));
    w.picture(QStringLiteral("budget-not-reached"));
  }

  void aWrongPlanIsToldWhereItStands() {
    WindowDriver w;
    QVERIFY(w.build(bundledModels()[1]));
    Recompute r(w);
    QVERIFY(r.judged());
    w.loop().act([&] { r.plan->setText(QStringLiteral("Gelu+:3:-1")); });
    QVERIFY(r.says(QStringLiteral("has kind '3'; expected PATTERN:1:COUNT")));
    QVERIFY(!r.apply->isEnabled());
    w.loop().act([&] { r.plan->setText(QStringLiteral("Nothing+:1:-1")); });
    QVERIFY(r.says(QStringLiteral("pattern 'Nothing+' is not in this graph")));
    QVERIFY(!w->notice().isProblem());
    // A good one, pasted over it, and out again.
    const QString good = QString::fromStdString(r.report()->patterns(0).pattern()) + QStringLiteral(":1:1");
    QGuiApplication::clipboard()->setText(good);
    w.loop().act([&] {
      r.plan->selectAll();
      r.plan->paste();
    });
    QVERIFY(r.answered());
    QVERIFY(r.apply->isEnabled());
    QGuiApplication::clipboard()->clear();
    for (auto* button : r.view->findChildren<QPushButton*>())
      if (button->text() == u"Copy") button->click();
    QCOMPARE(QGuiApplication::clipboard()->text(), good);
  }

  void withoutAnAnswerItSaysWhy() {
    qputenv("STEPSCOPE_WORKER", FAKE_WORKER);
    WindowDriver w;
    View* view = w.view(QStringLiteral("recompute"));
    QVERIFY(view->emptyText().contains(QStringLiteral("No plan yet")));
    w->store().setReadOnly(true);
    QVERIFY(view->emptyText().contains(QStringLiteral("A recorded project")));
    w->store().setReadOnly(false);
    w->openAndBuild(QStringLiteral("/nowhere/made_up.onnx"), {});
    QVERIFY(w.loop().wait([&] { return w->session().built() && !w->session().busy(); }));
    Recompute r(w);
    QVERIFY(r.judged());
    auto* plot = view->findChild<ParetoPlot*>();
    QVERIFY(plot && !plot->textAt({plot->xAxis->coordToPixel(48), plot->yAxis->coordToPixel(52)}).isEmpty());
    w->store().findings().setRecompute(nullptr, {});
    w->store().findings().setRecompute(nullptr, {false, {}, 0, QStringLiteral("the planner says no")});
    QVERIFY(view->emptyText().isEmpty());
    QCOMPARE(r.table->model()->rowCount(), 0);
    QVERIFY(view->grab().width() > 0);
  }
};

SS_QT_CLASS(QApplication, RecomputeTest)
#include "tst_recompute.moc"
