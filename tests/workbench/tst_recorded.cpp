// SPDX-License-Identifier: GPL-3.0-or-later
// A run recorded by the window with the real worker, then opened again read-only: what the session answered, the file
// answers too.
#include <QAbstractButton>
#include <QAction>
#include <QComboBox>
#include <QFileInfo>
#include <QInputDialog>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QTableView>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "tests/support/qt_classes.h"
#include "tests/workbench/window_driver.h"
#include "views/batch/batch_view.h"
#include "views/batch/worst_row.h"
#include "views/common/findings.h"
#include "views/common/format.h"
#include "views/common/names.h"
#include "views/common/pytorch_times.h"
#include "views/common/row_table.h"
#include "views/common/run_times.h"
#include "views/common/tokens.h"
#include "views/drawing/flame_canvas.h"
#include "views/graph/graph_view.h"
#include "views/graph/phase_diff.h"
#include "views/timeline/timeline_canvas.h"
#include "views/value_history/value_history_view.h"

using namespace stepscope;

namespace {

QAbstractItemModel* tableOf(View* view) { return view->findChild<RowTableView*>()->model(); }

// The text of each cell of the row whose first column holds `name`.
QStringList rowOf(View* view, const QString& name) {
  const auto* model = tableOf(view);
  QStringList cells;
  for (int r = 0; r < model->rowCount() && cells.isEmpty(); ++r) {
    if (model->index(r, 0).data().toString() != name) continue;
    for (int c = 0; c < model->columnCount(); ++c) cells << model->index(r, c).data().toString();
  }
  return cells;
}

}  // namespace

// What a running session shows of its newest build.
struct Live {
  Live() = default;
  explicit Live(const SnapshotStore& store) : stages(store.stages()) {
    for (const QString& stage : stages) graphs.push_back(store.graphOf(stage));
    for (const auto& d : store.determinismList()) verdicts.push_back(d.SerializeAsString());
    for (const auto& span : store.phases()) phases.push_back(span.SerializeAsString());
  }
  QStringList stages;
  std::vector<GraphPtr> graphs;
  std::vector<std::string> verdicts, phases;
};

class RecordedTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  // The project shows it too: every phase of the slider, the difference of two, the verdicts.
  static void sameAsLive(const QString& project, const Live& live) {
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    QCOMPARE(w->store().stages(), live.stages);
    QVERIFY(live.stages.size() >= 6);
    auto* graph = static_cast<GraphView*>(w.view(QStringLiteral("graph")));
    auto* strip = graph->findChild<PhaseStrip*>();
    QVERIFY(strip->isVisible());
    QCOMPARE(strip->stops(), live.stages);
    QCOMPARE(strip->shown(), static_cast<int>(live.stages.size()) - 1);
    for (int i = 0; i < live.stages.size(); ++i) {
      const QString& stage = live.stages[i];
      w.loop().act([&] { emit strip->chosen(stage, {}); });
      QVERIFY(w.loop().wait([&] { return w->store().graphOf(stage) != nullptr; }));
      QVERIFY2(w->store().graphOf(stage)->graph().SerializeAsString() ==
                   live.graphs[static_cast<std::size_t>(i)]->graph().SerializeAsString(),
               qPrintable(stage));
    }
    const auto from = static_cast<std::size_t>(live.stages.indexOf(QStringLiteral("attach loss"))),
               to = static_cast<std::size_t>(live.stages.indexOf(QStringLiteral("gradient")));
    const PhaseDiff diff = PhaseDiff::make(*live.graphs[from], *live.graphs[to]);
    QVERIFY(diff.added > 0);
    w.loop().act([&] { emit strip->chosen(QStringLiteral("gradient"), QStringLiteral("attach loss")); });
    QVERIFY(w.loop().wait([&] {
      return !graph->busy() && graph->headerText().contains(QStringLiteral("changes from attach loss to gradient"));
    }));
    QVERIFY(graph->headerText().startsWith(QStringLiteral("%1 nodes").arg(diff.united->nodeCount())));

    std::vector<std::string> verdicts;
    for (const auto& d : w->store().determinismList()) verdicts.push_back(d.SerializeAsString());
    QVERIFY(!verdicts.empty());
    QVERIFY(verdicts == live.verdicts);
    auto* determinism = w.view(QStringLiteral("determinism"));
    QVERIFY(w.loop().wait([&] { return tableOf(determinism)->rowCount() == static_cast<int>(verdicts.size()); }));
    QVERIFY(!determinism->findChild<QPushButton*>(QStringLiteral("determinism_twice"))->isEnabled());
    QVERIFY_LOOP(w);
  }

 private slots:
  void initTestCase() {
    qputenv("STEPSCOPE_WORKER", REAL_WORKER);
    applyTheme(*qApp, Theme::kLight);
  }

  void theFileAnswersWhatTheSessionAnswered() {
    const QString project = folder_.filePath(QStringLiteral("run.stepscope"));
    constexpr int kSteps = 6;
    QStringList pixels;
    WorstRow worst;
    std::vector<snapshot::StepRecord> live;
    {
      WindowDriver w;
      w->setProjectPath(project);
      QVERIFY_DONE(w.openBuilt(bundledModels()[0],
                               {{"record.batch", "1"}, {"record.statistics", "2"}, {"record.batch.bytes", "100000"}}),
                   w);
      auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
      for (int i = 0; i + 1 < kSteps; ++i) QVERIFY_DONE(w.act("step_whole"), w);
      // The last step by hand, with a look at its rows.
      w.loop().act([batch] { batch->openPage(BatchView::kWorst); });
      QVERIFY_DONE(w.act("step"), w);
      QVERIFY(w.loop().wait([&] { return w->store().findings().rowLosses() != nullptr; }));
      const int instruction = w->store().findings().rowLosses()->instruction();
      w.loop().act([&] { w->session().runTo(instruction + 1); });
      QVERIFY(w.settled());
      QVERIFY(w.loop().wait([&] { return w->store().findings().rowLosses()->values_size() > 0; }));
      worst = *worstRow(*w->store().findings().rowLosses(), 32);
      QVERIFY_DONE(w.act("step_whole"), w);
      const auto name = tableOf(batch)->index(0, 0).data().toString();
      QVERIFY(w.loop().wait([&] { return rowOf(batch, name).value(3) != QString(); }));
      pixels = rowOf(batch, name);
      for (const StepPtr& step : w->store().steps()) live.push_back(*step);
      QCOMPARE(live.size(), std::size_t{kSteps});
      QVERIFY(w.loop().wait([&] {
        return w->recording().idle() && !w->store().project().runs().empty() &&
               w->store().project().runs()[0].steps >= kSteps;
      }));
      QVERIFY_LOOP(w);
    }
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    QCOMPARE(w->store().steps().size(), std::size_t{kSteps});

    // What the steps noted came back as it was.
    for (int i = 0; i < kSteps; ++i) {
      const auto &then = live[static_cast<std::size_t>(i)], &now = *w->store().steps()[static_cast<std::size_t>(i)];
      QCOMPARE(now.warm_up(), i == 0);
      QCOMPARE(now.recording_ns(), then.recording_ns());
      QCOMPARE(now.row_losses().SerializeAsString() == then.row_losses().SerializeAsString(), true);
      QCOMPARE(now.inputs_size(), then.inputs_size());
      QCOMPARE(now.inputs(0).data() == then.inputs(0).data(), true);
      QCOMPARE(now.statistics_size(), then.statistics_size());
      QCOMPARE(now.statistics_size() > 0, i % 2 == 0);
    }

    // The batch: the same numbers, pictures, and the row that did worst.
    auto* batch = static_cast<BatchView*>(w.view(QStringLiteral("batch")));
    w.view(QStringLiteral("batch"));
    QVERIFY(w.loop().wait([&] { return rowOf(batch, pixels[0]).size() == pixels.size(); }));
    QCOMPARE(rowOf(batch, pixels[0]).mid(2), pixels.mid(2));
    w.loop().act([batch] { batch->openPage(BatchView::kContents); });
    QVERIFY(w.loop().wait([batch] { return batch->findChild<PictureGrid*>()->pictures() == 32; }, 5'000));
    w.loop().act([batch] { batch->openPage(BatchView::kWorst); });
    QVERIFY(batch->findChild<WorstPage*>()->toPlainText().contains(QStringLiteral("row %1 of 32").arg(worst.row)));
    // And of an earlier step.
    auto* steps = batch->findChild<QComboBox*>(QStringLiteral("batch_step"));
    QCOMPARE(steps->count(), kSteps + 1);
    const auto earlier = worstRow(live[1].row_losses(), 32);
    w.loop().act([&] {
      steps->setCurrentIndex(kSteps - 1);
      emit steps->activated(kSteps - 1);
    });
    QVERIFY(w.loop().wait([&] { return batch->headerText().startsWith(QStringLiteral("step 1")); }));
    QVERIFY(batch->findChild<WorstPage*>()->toPlainText().contains(QStringLiteral("row %1 of 32").arg(earlier->row)));
    // It is the step of the whole window: the timeline has it alone, and the batch follows a step that is chosen there.
    w.view(QStringLiteral("timeline"));
    const auto shownAlone = [&](std::int64_t step) {
      const auto& model = w.view(QStringLiteral("timeline"))->findChild<TimelineCanvas*>()->model();
      return model && model->steps().size() == 1 && model->steps()[0].step == step;
    };
    QVERIFY(w.loop().wait([&] { return shownAlone(1); }));
    w.loop().act([&] { emit w->wishes().showStep(3); });
    QVERIFY(w.loop().wait([&] { return shownAlone(3); }));
    w.view(QStringLiteral("batch"));
    QVERIFY(w.loop().wait([&] { return batch->headerText().startsWith(QStringLiteral("step 3:")); }));
    QVERIFY(w.loop().wait([&] { return steps->currentData().toLongLong() == 3; }));
    w.loop().act([&] { emit steps->activated(0); });  // the newest again
    QVERIFY(w.loop().wait([&] { return batch->headerText().startsWith(QStringLiteral("step %1:").arg(kSteps - 1)); }));

    // Values over steps: a gradient for each parameter, three points each; the chosen one is selected everywhere.
    auto* values = static_cast<ValueHistoryView*>(w.view(QStringLiteral("value_history")));
    w.view(QStringLiteral("value_history"));
    QVERIFY(w.loop().wait([values] { return !values->series().empty(); }));
    int gradients = 0, parameters = 0;
    for (const ValueSeries& s : values->series()) {
      gradients += s.kind == "gradient";
      parameters += s.kind == "parameter";
      QCOMPARE(s.points.size(), std::size_t{3});
      QVERIFY(s.points[0].norm > 0 || s.kind != "gradient");
    }
    QVERIFY(gradients > 0);
    QCOMPARE(gradients, parameters);
    auto* table = values->findChild<RowTableView*>();
    w.loop().act([&] { table->setCurrentIndex(table->model()->index(1, 0)); });
    QCOMPARE(w->selection().selection().value, values->series()[static_cast<std::size_t>(values->shown())].value);
    QVERIFY(w->selection().selection().node >= 0);

    // Warm-up is marked in the timeline and not mixed into sums.
    w.view(QStringLiteral("timeline"));
    auto* timeline = w.view(QStringLiteral("timeline"))->findChild<TimelineCanvas*>();
    QVERIFY(w.loop().wait([timeline] { return timeline->model() && timeline->model()->steps().size() == kSteps; }));
    QVERIFY(timeline->model()->steps()[0].warmUp && !timeline->model()->steps()[1].warmUp);
    w.view(QStringLiteral("flame"));
    QVERIFY(w.loop().wait(
        [&] { return w.view(QStringLiteral("flame"))->headerText().contains(QStringLiteral("1 warm-up step left out")); }));
    w.view(QStringLiteral("hot_ops"));
    auto* ops = w.view(QStringLiteral("hot_ops"));
    QVERIFY(w.loop().wait([&] { return ops->headerText().contains(QStringLiteral("1 warm-up step left out")); }));

    // An operator of the table means all its nodes, here and in the flame graph and the timeline.
    auto* opTable = ops->findChild<RowTableView*>();
    int chosen = -1;
    for (int r = 0; r < opTable->model()->rowCount() && chosen < 0; ++r) {
      if (opTable->model()->index(r, 1).data(RowTableModel::kSortRole).toLongLong() >= 2 * (kSteps - 1)) chosen = r;
    }
    QVERIFY(chosen >= 0);
    w.loop().act([&] { opTable->setCurrentIndex(opTable->model()->index(chosen, 0)); });
    const auto group = w->selection().selection().group;
    QVERIFY(group != nullptr);
    QCOMPARE(opTable->model()->index(chosen, 1).data(RowTableModel::kSortRole).toLongLong(),
             qint64(group->nodes().size()) * (kSteps - 1));
    QVERIFY(!w.view(QStringLiteral("flame"))->findChild<FlameCanvas*>()->marked().empty());
    QCOMPARE(timeline->group().size(), group->nodes().size());

    // What PyTorch took stands beside the operator that it was joined with, and is gone with the last of its rows.
    w.view(QStringLiteral("hot_ops"));
    const int plain = opTable->model()->columnCount();
    const QString named = opTable->model()->index(0, 0).data().toString();
    const QStringList words = named.split(QStringLiteral("  "));
    QCOMPARE(words.size(), 2);
    PyTorchTimes& pytorch = PyTorchTimes::of(w->store().project());
    // The one that was joined: ours is its median over the steps of the table, whichever these are.
    int joinedAt = -1;
    for (int i = 0; i < w->store().plan()->size() && joinedAt < 0; ++i) {
      const auto* in = w->store().plan()->instruction(i);
      if (!in->view() && names::op(*in) == words[0] && names::phase(in->phase()).toLower() == words[1]) joinedAt = i;
    }
    QVERIFY(joinedAt >= 0);
    const auto medianOf = [&] {
      std::vector<qint64> ns;
      for (const StepPtr& step : w->store().steps())
        for (const auto& span : step->spans())
          if (span.instruction() == joinedAt && step != w->store().steps().front())
            ns.push_back(span.end_ns() - span.begin_ns());
      std::sort(ns.begin(), ns.end());
      return ns[static_cast<std::size_t>(0.5 * static_cast<double>(ns.size() - 1) + 0.5)];
    };
    w.loop().act([&] { pytorch.set({{{words[1], words[0]}, {3e6, {joinedAt}, QStringLiteral("aten::mm, aten::add")}}}); });
    QVERIFY(w.loop().wait([&] { return opTable->model()->columnCount() == plain + 3; }));
    for (int r = 0; r < opTable->model()->rowCount(); ++r) {
      const bool joined = opTable->model()->index(r, 0).data().toString() == named;
      QCOMPARE(opTable->model()->index(r, 4).data().toString(), joined ? format::time(3'000'000) : QString());
      QCOMPARE(opTable->model()->index(r, 5).data().toString(), joined ? format::time(medianOf()) : QString());
      QCOMPARE(opTable->model()->index(r, 6).data().toString(),
               joined ? QString::number(static_cast<double>(medianOf()) / 3e6, 'f', 2) : QString());
      if (joined)
        QVERIFY(
            opTable->model()->index(r, 4).data(Qt::ToolTipRole).toString().contains(QStringLiteral("aten::mm, aten::add")));
    }
    w.loop().act([&] { pytorch.set({}); });
    QVERIFY(w.loop().wait([&] { return opTable->model()->columnCount() == plain; }));

    // A run has the whole distribution of its step times: without warm-up and the step that was walked through by hand.
    const TimeFigures times = RunTimes::of(w->store().project()).step(w->store().project().runs()[0].id);
    QCOMPARE(times.n, kSteps - 2);
    QVERIFY(times.min <= times.median && times.median <= times.p95 && times.p95 <= times.max);
    QVERIFY_LOOP(w);
  }

  // A change of options in the middle of the work is another build: of its own in Start-up, in the phase slider, and in the
  // file.
  void everyBuildIsShownAndRecorded() {
    const QString project = folder_.filePath(QStringLiteral("builds.stepscope"));
    Live live;
    {
      WindowDriver w;
      w->setProjectPath(project);
      QVERIFY_DONE(w.openBuilt(bundledModels()[1]), w);
      QCOMPARE(w->store().phases().front().name(), std::string("load"));
      QVERIFY(!w->store().stages().contains(QStringLiteral("recompute")));
      QVERIFY_DONE(w.act("step_whole"), w);

      // In the middle of a step the new plan is built at once, and the step goes on under it at the same place.
      QVERIFY_DONE(w.act("step"), w);
      const int before = w->store().plan()->size();
      w.loop().act([&] { w->session().setOptions({{QStringLiteral("recompute.plan"), QStringLiteral("block:1:-1")}}); });
      QVERIFY(w.settled());
      QVERIFY(w->store().position().in_step());
      QCOMPARE(w.instruction(), 1);
      QVERIFY(w->store().plan()->size() > before);
      QVERIFY(w->store().stages().contains(QStringLiteral("recompute")));

      // Start-up: the phases that ran again, once each, beside those of the build before.
      int binds = 0;
      for (const auto& span : w->store().phases()) {
        QVERIFY(span.name() != "load");
        binds += span.name() == "bind" && span.ns() > 0;
      }
      QCOMPARE(binds, 1);
      QVERIFY(w.loop().wait([&] { return w->store().project().startupHistory().startups.size() == 2; }));
      auto* table = tableOf(w.view(QStringLiteral("startup_table")));
      QVERIFY(w.loop().wait([&] { return table->headerData(3, Qt::Horizontal).toString() == QStringLiteral("Change"); }));
      QCOMPARE(rowOf(w.view(QStringLiteral("startup_table")), QStringLiteral("gradient")).value(9), QStringLiteral("1"));
      QVERIFY(w.view(QStringLiteral("startup_chart"))
                  ->headerText()
                  .contains(QStringLiteral("from the read model to a new plan")));
      QVERIFY_DONE(w.act("step_whole"), w);

      // And back: between steps at once.
      w.loop().act([&] {
        w->session().setOptions(
            {{QStringLiteral("recompute.plan"), QString()}, {QStringLiteral("pass.fold_constants"), QStringLiteral("off")}});
      });
      QVERIFY(w.settled());
      QVERIFY2(!w->notice().isProblem(), qPrintable(w->notice().text()));
      QVERIFY(!w->store().stages().contains(QStringLiteral("recompute")));
      QVERIFY(w.loop().wait([&] { return w->store().project().startupHistory().startups.size() == 3; }));
      QVERIFY_DONE(w.act("step_whole"), w);
      for (const QString& stage : w->store().stages()) {
        w.loop().act([&] { emit w->wishes().stageGraph(stage); });
        QVERIFY(w.loop().wait([&] { return w->store().graphOf(stage) != nullptr; }));
      }
      live = Live(w->store());
      QVERIFY(live.verdicts.size() == static_cast<std::size_t>(w->store().plan()->size()));
      QVERIFY(w.recorded());
      QVERIFY_LOOP(w);
    }
    sameAsLive(project, live);
    QVERIFY(QFileInfo(project).size() < 4'000'000);
  }

  // What the command line records is as good.
  void theCommandLineRecordsAllPhases() {
    const QString project = folder_.filePath(QStringLiteral("command.stepscope"));
    const TestModel model = bundledModels()[1];
    QProcess train;
    train.start(QStringLiteral(REAL_WORKER),
                {QStringLiteral("train"), model.model, QStringLiteral("--data"), model.data, QStringLiteral("--steps"),
                 QStringLiteral("2"), QStringLiteral("--project"), project});
    QVERIFY(train.waitForFinished(60'000));
    QVERIFY2(train.exitCode() == 0, train.readAllStandardError().constData());
    WindowDriver w;
    QVERIFY_DONE(w.openBuilt(model), w);
    for (const QString& stage : w->store().stages()) {
      w.loop().act([&] { emit w->wishes().stageGraph(stage); });
      QVERIFY(w.loop().wait([&] { return w->store().graphOf(stage) != nullptr; }));
    }
    sameAsLive(project, Live(w->store()));
  }

  // Every run gets another name: one of a recorded project, an earlier one beside the one that is recorded. A project that
  // another window records into keeps its names, and says why.
  void aRunIsNamed() {
    const QString project = folder_.filePath(QStringLiteral("named.stepscope"));
    const auto nameOf = [](WindowDriver& w, int row) -> QAction* {
      View* view = w.view(QStringLiteral("runs"));
      auto* table = view->findChild<QTableView*>();
      w.loop().wait([&] { return table->model()->rowCount() == 2; }, 10'000);
      w.loop().act(
          [&] { emit table->customContextMenuRequested(table->visualRect(table->model()->index(row, 1)).center()); });
      const auto actions = view->findChildren<QAction*>(QStringLiteral("name_run"));
      return actions.isEmpty() ? nullptr : actions.back();
    };
    const auto rename = [](WindowDriver& w, QAction* action, const QString& name) {
      w.loop().act([action] { action->trigger(); });
      auto* dialog = w->findChild<QInputDialog*>(QStringLiteral("name_run_dialog"));
      if (!dialog) return false;
      w.loop().act([&] {
        dialog->setTextValue(name);
        dialog->accept();
      });
      return w.loop().wait([&] { return w->recording().idle(); });
    };
    const auto named = [](WindowDriver& w, std::int64_t run, const QString& name) {
      return w.loop().wait([&] {
        for (const RunEntry& entry : w->store().project().runs())
          if (entry.id == run) return entry.name == name;
        return false;
      });
    };
    {
      WindowDriver w;
      w->setProjectPath(project);
      QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
      QVERIFY_DONE(w.act("step_whole") && w.act("new_run"), w);
      QVERIFY_DONE(w.settled() && w.act("step_whole") && w.recorded(), w);
      const qint64 first = w->store().project().runs().front().id;
      for (int row = 0; row < 2; ++row) {
        QAction* action = nameOf(w, row);
        QVERIFY(action && action->isEnabled());
        if (action->text() == QStringLiteral("Name run %1…").arg(first))
          QVERIFY(rename(w, action, QStringLiteral("an earlier one")));
      }
      QVERIFY(named(w, first, QStringLiteral("an earlier one")));
      // Somebody else looks at it meanwhile.
      WindowDriver other;
      QVERIFY_DONE(other.openRecorded(project), other);
      const QAction* refused = nameOf(other, 0);
      QVERIFY(refused && !refused->isEnabled());
      QVERIFY2(refused->toolTip().contains(QStringLiteral("records into this project")), qPrintable(refused->toolTip()));
      QVERIFY(!other->actions()[QStringLiteral("name_run")]->isEnabled());
      QCOMPARE(other->actions()[QStringLiteral("name_run")]->toolTip(), refused->toolTip());
      QVERIFY(!other->actions()[QStringLiteral("breakpoint_add")]->isEnabled());
    }
    {
      WindowDriver w;
      QVERIFY_DONE(w.openRecorded(project), w);
      QAction* action = nameOf(w, 0);
      QVERIFY(action && action->isEnabled());
      const qint64 run = action->text().section(' ', 2, 2).chopped(1).toLongLong();
      QVERIFY2(rename(w, action, QStringLiteral("base, lr 0.003")), "a dialog asks");
      QVERIFY(named(w, run, QStringLiteral("base, lr 0.003")));
      w.picture(QStringLiteral("runs-renamed"));
      // By the menu of the window: the one that is shown.
      const qint64 shown = w->store().project().runs().back().id;
      QVERIFY(rename(w, w->actions()[QStringLiteral("name_run")], QStringLiteral("the newest")));
      QVERIFY(named(w, shown, QStringLiteral("the newest")));
      QVERIFY_DONE(!w->notice().isProblem(), w);
    }
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    QVERIFY2(named(w, w->store().project().runs().back().id, QStringLiteral("the newest")), "the file has it");
  }

  // A run goes out of the project by its menu, after a question; its space comes back. What is recorded is left alone.
  void aRunIsDeletedAndItsSpaceComesBack() {
    const QString project = folder_.filePath(QStringLiteral("two.stepscope"));
    const auto menuOf = [](WindowDriver& w, int row) -> QAction* {
      View* view = w.view(QStringLiteral("runs"));
      auto* table = view->findChild<QTableView*>();
      w.loop().wait([&] { return table->model()->rowCount() == 2; }, 10'000);
      w.loop().act(
          [&] { emit table->customContextMenuRequested(table->visualRect(table->model()->index(row, 1)).center()); });
      const auto actions = view->findChildren<QAction*>(QStringLiteral("run_delete"));
      return actions.isEmpty() ? nullptr : actions.back();
    };
    {
      WindowDriver w;
      w->setProjectPath(project);
      QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
      for (int i = 0; i < 2; ++i) {
        w.loop().act([&] { w->session().train(400); });  // beside them what every project holds is small
        QVERIFY(w.settled());
        if (i == 0) QVERIFY(w.act("new_run"));
        QVERIFY(w.settled());
      }
      QVERIFY(w.recorded());
    }
    const qint64 before = QFileInfo(project).size();
    WindowDriver w;
    QVERIFY_DONE(w.openRecorded(project), w);
    QCOMPARE(w->store().project().runs().size(), 2u);
    QAction* away = menuOf(w, 0);
    QVERIFY(away && away->isEnabled());
    const QString name = away->text();
    w.loop().act([away] { away->trigger(); });
    auto* question = w->findChild<QMessageBox*>(QStringLiteral("run_delete_question"));
    QVERIFY(question && question->isVisible());
    w.loop().act([question] {
      for (QAbstractButton* button : question->buttons())
        if (question->buttonRole(button) == QMessageBox::DestructiveRole) button->click();
    });
    QVERIFY_DONE(w.loop().wait([&] { return w->store().project().runs().size() == 1 && w->recording().idle(); }, 20'000), w);
    QVERIFY(!w->notice().isProblem());
    const qint64 left = w->store().project().runs()[0].id;
    QVERIFY2(!name.contains(QString::number(left)), qPrintable(name));
    QVERIFY2(QFileInfo(project).size() < before * 3 / 4,
             qPrintable(QStringLiteral("%1 of %2").arg(QFileInfo(project).size()).arg(before)));
    QVERIFY(w->store().plan());  // the one that is left is shown
  }

  // An earlier run goes while another one is recorded; the one that is recorded cannot.
  void anEarlierRunIsDeletedWhileOneIsRecorded() {
    WindowDriver w;
    w->setProjectPath(folder_.filePath(QStringLiteral("live.stepscope")));
    QVERIFY_DONE(w.openBuilt(bundledModels()[0]), w);
    w.loop().act([&] { w->session().train(20); });
    QVERIFY(w.settled());
    QVERIFY(w.act("new_run"));
    QVERIFY(w.settled());
    w.loop().act([&] { w->session().train(5); });
    QVERIFY(w.settled() && w.recorded());
    View* view = w.view(QStringLiteral("runs"));
    auto* table = view->findChild<QTableView*>();
    QVERIFY(w.loop().wait([&] { return table->model()->rowCount() == 2; }, 10'000));
    QAction* earlier = nullptr;
    for (int row = 0; row < 2; ++row) {
      w.loop().act(
          [&] { emit table->customContextMenuRequested(table->visualRect(table->model()->index(row, 1)).center()); });
      QAction* away = view->findChildren<QAction*>(QStringLiteral("run_delete")).back();
      const bool first = away->text().contains('1');
      QCOMPARE(away->isEnabled(), first);
      if (first) earlier = away;
      if (!first) QVERIFY2(away->toolTip().contains(QStringLiteral("is being recorded")), qPrintable(away->toolTip()));
    }
    QVERIFY(earlier);
    w.loop().act([earlier] { earlier->trigger(); });
    auto* question = w->findChild<QMessageBox*>(QStringLiteral("run_delete_question"));
    QVERIFY(question && question->isVisible());
    w.loop().act([question] {
      for (QAbstractButton* button : question->buttons())
        if (question->buttonRole(button) == QMessageBox::DestructiveRole) button->click();
    });
    QVERIFY_DONE(w.loop().wait([&] { return w->store().project().runs().size() == 1 && w->recording().idle(); }, 20'000), w);
    QVERIFY_DONE(!w->notice().isProblem(), w);
    QCOMPARE(w->store().project().runs()[0].id, std::int64_t{2});
    // Whoever asks all the same is told why not.
    w.loop().act([&] { emit w->wishes().deleteRun(2); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem(); }));
    QCOMPARE(w->notice().text(), QStringLiteral("run '2': it is being recorded; expected an earlier run of the project"));
    w.loop().act([&] { w->notice().clear(); });
    w.loop().act([&] { w->session().train(5); });
    QVERIFY(w.settled() && w.recorded());
    w.loop().act([&] { w->recording().queries().refreshRuns(); });
    QVERIFY(w.loop().wait([&] { return w->store().project().runs()[0].steps == 10; }, 20'000));
    QVERIFY_LOOP(w);
  }

  // A file that lacks its end: what can be read is shown, and what cannot is said.
  void aDamagedProjectSaysWhatIsMissing() {
    const QString whole = folder_.filePath(QStringLiteral("command.stepscope"));
    const QString cut = folder_.filePath(QStringLiteral("cut.stepscope"));
    QVERIFY(QFile::copy(whole, cut));
    QFile file(cut);
    QVERIFY(file.open(QIODevice::ReadWrite) && file.resize(file.size() - 5 * 4096));
    file.close();
    WindowDriver w;
    w.loop().act([&] { w->openPath(cut); });
    QVERIFY(w.loop().wait([&] { return w->notice().isProblem() && w->recording().idle(); }));
    QVERIFY(w->store().readOnly());
    QVERIFY2(w->notice().text().contains(QStringLiteral("What can be read is shown")), qPrintable(w->notice().text()));
    const auto& alerts = w->store().alerts();
    const auto told = std::count_if(alerts.begin(), alerts.end(), [](const auto& a) { return a.code() == "project"; });
    QVERIFY2(told >= 1, qPrintable(w->notice().text()));
    w.loop().act([&] { w->findChild<QPushButton*>(QStringLiteral("notice_action"))->click(); });
    QVERIFY(w.view(QStringLiteral("alerts")));
    QVERIFY_LOOP(w);
  }
};

SS_QT_CLASS(WatchedApplication, RecordedTest)
#include "tst_recorded.moc"
