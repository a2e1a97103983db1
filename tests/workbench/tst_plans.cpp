// SPDX-License-Identifier: GPL-3.0-or-later
// Steps of one run under several plans: every view shows an older step by the plan that it ran under, or says that it is of
// another one. Live, read from the project, one step alone; with the real worker.
#include <QTest>
#include <algorithm>
#include <map>
#include <set>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/common/chosen_step.h"
#include "views/common/row_table.h"
#include "views/common/step_plans.h"
#include "views/common/tokens.h"
#include "views/timeline/timeline_canvas.h"
#include "views/value_history/value_history_view.h"

using namespace stepscope;

namespace {

using Names = std::vector<std::string>;  // by instruction

Names namesOf(const PlanSnapshot& plan) {
  Names names;
  for (const auto& in : plan.plan().instructions()) names.push_back(in.label());
  return names;
}

// The first slice of a step that does not have the name its plan gave it; empty: all have it, and all instructions are
// there.
QString wrongName(const TimelineModel& model, const std::map<std::int64_t, Names>& expected) {
  std::map<std::int64_t, std::set<int>> seen;
  for (const TimelineRow& row : model.rows()) {
    for (const TimelineSlice& slice : row.slices) {
      const std::int64_t step = model.steps()[static_cast<std::size_t>(slice.step)].step;
      const auto* in = model.ran(slice.step, slice.own);
      const std::string wanted = expected.at(step)[static_cast<std::size_t>(slice.own)];
      if (!in || in->label() != wanted)
        return QStringLiteral("step %1, instruction %2: '%3' where '%4' ran")
            .arg(step)
            .arg(slice.own)
            .arg(QString::fromStdString(in ? in->label() : "?"), QString::fromStdString(wanted));
      seen[step].insert(slice.own);
    }
  }
  for (const auto& step : model.steps())
    if (seen[step.step].size() < 20)
      return QStringLiteral("step %1 has %2 slices").arg(step.step).arg(seen[step.step].size());
  return {};
}

}  // namespace

class PlansTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  static std::shared_ptr<const TimelineModel> timelineOf(WindowDriver& w, std::size_t steps) {
    auto* canvas = w.view(QStringLiteral("timeline"))->findChild<TimelineCanvas*>();
    w.loop().wait([&] { return canvas->model() && canvas->model()->steps().size() == steps; }, 20'000);
    return canvas->model();
  }

  static void setOption(WindowDriver& w, const char* name, const char* value) {
    w.loop().act([&] { emit w->wishes().setOption(QString::fromLatin1(name), QString::fromLatin1(value)); });
    w.settled();
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void stepsOfAnotherPlanKeepTheirNames() {
    const QString project = folder_.filePath(QStringLiteral("plans.stepscope"));
    std::map<std::int64_t, Names> expected;  // by step
    {
      WindowDriver w;
      w->setProjectPath(project);
      QVERIFY_DONE(w.openBuilt(bundledModels()[1], {{"record.statistics", "1"}}), w);
      const auto step = [&] {
        const std::int64_t now = w->store().position().step();
        expected[now] = namesOf(*w->store().plan());
        return w.act("step_whole");
      };
      QVERIFY_DONE(step() && step(), w);
      const Names first = expected[0];
      setOption(w, "recompute.plan", "block:1:-1");
      QVERIFY(namesOf(*w->store().plan()) != first);
      // The steps before are of another plan now: the timeline names them by it, the sums leave them out.
      auto model = timelineOf(w, 2);
      QCOMPARE(wrongName(*model, expected), QString());
      QCOMPARE(model->others(), 2);
      View* timeline = w.view(QStringLiteral("timeline"));
      QVERIFY2(w.loop().wait([&] { return timeline->headerText().contains(QStringLiteral("2 of another plan")); }),
               qPrintable(timeline->headerText()));
      View* ops = w.view(QStringLiteral("hot_ops"));
      QVERIFY2(w.loop().wait([&] { return ops->emptyText().contains(QStringLiteral("another plan")); }),
               qPrintable(ops->emptyText()));
      QVERIFY(w->store().timing(0).step < 0);
      QVERIFY_DONE(step(), w);
      QCOMPARE(expected[2].size(), namesOf(*w->store().plan()).size());
      model = timelineOf(w, 3);
      QCOMPARE(wrongName(*model, expected), QString());
      QCOMPARE(model->others(), 2);
      QVERIFY2(w.loop().wait([&] { return ops->headerText().contains(QStringLiteral("2 of another plan left out")); }),
               qPrintable(ops->headerText()));
      QVERIFY(w->store().timing(0).step == 2);

      QVERIFY2(model->presentBegin() >= model->steps()[2].begin, "it opens on the steps of the present plan");

      // What is selected is an instruction of the plan that is shown, whichever step was clicked.
      int found = 0;
      for (const TimelineRow& row : model->rows()) {
        for (const TimelineSlice& slice : row.slices) {
          const auto* shown = w->store().plan()->instruction(slice.instruction);
          const auto* own = model->ran(slice.step, slice.own);
          if (slice.instruction < 0) continue;
          QVERIFY(shown && own);
          QCOMPARE(QString::fromStdString(shown->label()), QString::fromStdString(own->label()));
          found += slice.instruction != slice.own;
        }
      }
      QVERIFY2(found > 10, "many of them have another number in the new plan");

      // A value of an older step is the value of that name in the graph that is shown.
      auto* values = static_cast<ValueHistoryView*>(w.view(QStringLiteral("value_history")));
      QVERIFY(w.loop().wait([values] { return !values->series().empty(); }));
      setOption(w, "recompute.plan", "");
      auto* table = values->findChild<RowTableView*>();
      QVERIFY(w.loop().wait([&] { return table->model()->rowCount() > 4; }));
      for (int row = 0; row < 4; ++row) {
        w.loop().act([&] { table->setCurrentIndex(table->model()->index(row, 0)); });
        const auto* value = w->store().graph()->value(w->selection().selection().value);
        QVERIFY(value);
        QCOMPARE(QString::fromStdString(value->name()),
                 QString::fromStdString(values->series()[static_cast<std::size_t>(values->shown())].name));
      }
      // The plan of the first steps again: they count again, and the third does not.
      QVERIFY(namesOf(*w->store().plan()) == first);
      model = timelineOf(w, 3);
      QVERIFY(w.loop().wait([&] { return timelineOf(w, 3)->others() == 1; }));
      w.view(QStringLiteral("hot_ops"));
      QVERIFY2(w.loop().wait([&] { return ops->headerText().contains(QStringLiteral("1 of another plan left out")); }),
               qPrintable(ops->headerText()));
      setOption(w, "recompute.plan", "block:1:-1");
      QVERIFY(w.recorded());
      QVERIFY_LOOP(w);
    }
    // The project says the same, though its newest plan is that of the last step alone.
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    auto model = timelineOf(w, 3);
    QCOMPARE(model->steps().size(), std::size_t{3});
    QCOMPARE(wrongName(*model, expected), QString());
    QCOMPARE(model->others(), 2);
    QVERIFY(w->store().timing(0).step == 2);
    for (const auto& step : model->steps()) QVERIFY(step.plan);
    // One of them alone, by its own plan; the views of the plan that is shown say that it is of another.
    w.loop().act([&] { emit w->wishes().showStep(1); });
    QVERIFY(w.loop().wait([&] { return ChosenStep::of(w->store()).state() == ChosenStep::State::kShown; }));
    model = timelineOf(w, 1);
    QCOMPARE(wrongName(*model, expected), QString());
    QCOMPARE(model->others(), 1);
    for (const char* id : {"hot_ops", "flame"}) {
      View* view = w.view(QLatin1String(id));
      QVERIFY2(w.loop().wait([&] { return view->emptyText().startsWith(QStringLiteral("Step 1 ran under another plan")); }),
               qPrintable(view->emptyText()));
    }
    QVERIFY_LOOP(w);
  }

  // While it runs at full speed and an option is changed between two of its steps.
  void aChangeWhileItRunsSeparatesTheSteps() {
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(bundledModels()[1], {{"record", "instructions"}}), w);
    const Names before = namesOf(*w->store().plan());
    w.loop().act([&] { w->session().train(1'000'000); });
    QVERIFY(w.loop().wait([&] { return w->store().series().size() >= 3; }));
    w.loop().act([&] { emit w->wishes().setOption(QStringLiteral("recompute.plan"), QStringLiteral("block:1:-1")); });
    QVERIFY(w.loop().wait([&] { return namesOf(*w->store().plan()) != before; }));
    const std::size_t then = w->store().series().size();
    QVERIFY(w.loop().wait([&] { return w->store().series().size() >= then + 3; }));
    w.loop().act([&] { w->session().pause(); });
    QVERIFY(w.settled());
    const Names after = namesOf(*w->store().plan());
    const StepPlans& plans = StepPlans::of(w->store());
    int old = 0, now = 0;
    for (const StepPtr& step : w->store().steps()) {
      if (step->spans_size() == 0) continue;
      const PlanOfStep under = plans.planOf(step->step());
      QVERIFY2(under.plan, qPrintable(QString::number(step->step())));
      const Names names = namesOf(*under.plan);
      QVERIFY(names == before || names == after);
      QVERIFY(now == 0 || names == after);  // none of the old after one of the new
      QCOMPARE(step->spans_size() <= static_cast<int>(names.size()), true);
      ++(names == before ? old : now);
      QCOMPARE(plans.underPresent(*step), names == after);
    }
    QVERIFY2(now >= 3, qPrintable(QStringLiteral("%1 old, %2 new").arg(old).arg(now)));
    QVERIFY_LOOP(w);
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

SS_QT_CLASS(QApplication, PlansTest)
#include "tst_plans.moc"
