#include "storage/recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "storage/comparison.h"
#include "storage/queries.h"
#include "storage/timing.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

TEST(Recorder, KeepsEverythingOfARun) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {2, 12});
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  const auto run = newestRun(project).value();
  const RunRow row = readRun(project, run).value();
  EXPECT_EQ(row.status, "finished");
  EXPECT_EQ(row.name, "gpt_small.onnx");
  EXPECT_EQ(row.steps, 12);
  EXPECT_NEAR(*row.firstLoss, 9.0, 0.2);
  EXPECT_EQ(readOptions(project, run)->size(), 5u);
  EXPECT_EQ(readPhases(project, run)->size(), testing::samplePhases().size());
  EXPECT_EQ(readPasses(project, run)->at(1).nearMisses.size(), 5u);
  EXPECT_EQ(readPasses(project, run)->at(1).nearMisses[0].nodeName, "transformer.h.0.attn/LayerNormalization_0");
  EXPECT_EQ(readMachine(project, run)->cpu_features_size(), 4);
  EXPECT_EQ(readModel(project, run)->producer(), "pytorch 2.4.0");
  EXPECT_EQ(readAlerts(project, run)->size(), 1u);
  EXPECT_TRUE(readLost(project, run)->empty());
  EXPECT_EQ(readGraph(project, run, "optimizer")->nodes_size(), testing::sampleGraph({2, 0}).nodes_size());
  EXPECT_EQ(readGraph(project, run, "nothing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(readPlan(project, run)->SerializeAsString(), testing::samplePlan({2, 0}).SerializeAsString());
}

TEST(Recorder, AllCoresAreANumberOfThreads) {
  const TemporaryFolder folder;
  {
    auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
    RunInfo info = testing::sampleRunInfo();
    info.threads = 0;
    info.machine.set_cores(6);
    recorder->beginRun(info);
    recorder->endRun(RunStatus::kFinished, "");
    ASSERT_TRUE(recorder->close());
  }
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_EQ(readRun(project, newestRun(project).value())->threads, 6);
}

TEST(Recorder, DeviceAndPrecisionAreThoseOfTheOptions) {
  const TemporaryFolder folder;
  {
    auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
    RunInfo info = testing::sampleRunInfo();
    for (const auto& [name, value] : {std::pair("device", "emulated"), std::pair("precision", "bf16")}) {
      info.options.emplace_back().set_name(name);
      info.options.back().set_value(value);
    }
    recorder->beginRun(info);
    ASSERT_TRUE(recorder->close());
  }
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  const auto run = readRun(project, newestRun(project).value());
  EXPECT_EQ(run->device, "emulated");
  EXPECT_EQ(run->precision, "bf16");
}

TEST(Recorder, SpansComeBackAsTheyWere) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {2, 3});
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  const auto expected = testing::sampleStep(testing::samplePlan({2, 0}), 2);
  const auto spans = readSpans(project, readSteps(project, 1)->back().id).value();
  ASSERT_EQ(spans.size(), static_cast<std::size_t>(expected.spans_size()));
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto& want = expected.spans(static_cast<int>(i));
    EXPECT_EQ(spans[i].instruction, want.instruction());
    EXPECT_EQ(spans[i].node, want.node());
    EXPECT_EQ(spans[i].beginNs, want.begin_ns());
    EXPECT_EQ(spans[i].ns, want.end_ns() - want.begin_ns());
  }
}

TEST(Recorder, WarmUpIsMarkedAndLeftOutOfStatistics) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {1, 10});
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_TRUE(readSteps(project, 1)->front().warmUp);
  EXPECT_FALSE(readSteps(project, 1)->at(1).warmUp);
  const Timing timing = readTiming(project, 1).value();
  EXPECT_EQ(timing.steps, 9);
  double share = 0;
  for (const OpTime& op : timing.ops) {
    EXPECT_EQ(op.time.n, op.instructions * 9);
    EXPECT_LE(op.time.min, op.time.median);
    EXPECT_LE(op.time.median, op.time.p95);
    EXPECT_LE(op.time.p95, op.time.max);
    share += op.share;
  }
  EXPECT_GT(share, 0.9);
  EXPECT_LE(share, 1.0001);  // views are not operators that ran
}

TEST(Recorder, ACopyIsAnOperatorOfItsOwn) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  recorder->graph(testing::sampleGraph({1, 0}));
  snapshot::Plan plan = testing::samplePlan({1, 0});
  const std::string served = plan.instructions(1).op();
  plan.mutable_instructions(1)->set_kind(snapshot::KIND_COPY);
  plan.mutable_instructions(4)->set_kind(snapshot::KIND_COMMIT);
  recorder->plan(plan);
  for (int step = 0; step < 4; ++step) recorder->step(testing::sampleStep(plan, step));
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  const Timing timing = readTiming(project, 1).value();
  std::int64_t others = 0;
  for (int i = 0; i < plan.instructions_size(); ++i)
    others += i != 1 && i != 4 && plan.instructions(i).op() == served && plan.instructions(i).phase() == snapshot::FORWARD;
  std::map<std::string, OpTime> forward;
  for (const OpTime& op : timing.ops)
    if (op.phase == "forward") forward.emplace(op.op, op);
  ASSERT_TRUE(forward.contains("Copy") && forward.contains("Commit"));
  EXPECT_EQ(forward["Copy"].instructions, 1);
  EXPECT_EQ(forward["Copy"].time.n, 3);
  EXPECT_EQ(forward["Copy"].category, "other");
  EXPECT_EQ(forward.contains(served) ? forward[served].instructions : 0, others);
}

TEST(Recorder, StepsThatGoBackToAnEarlierPlanBelongToIt) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun(testing::sampleRunInfo());
  snapshot::Plan plan = testing::samplePlan({1, 0});
  auto step = [&, next = 0]() mutable { recorder->step(testing::sampleStep(plan, next++)); };
  for (const char* signature : {"x [2, 128]", "x [2, 64]"}) {
    plan.set_signature(signature);
    recorder->plan(plan);
    step();
  }
  recorder->planResumed("x [2, 128]");
  step();
  recorder->planResumed("x [2, 32]");
  step();
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  auto rows =
      project.connection().prepare("SELECT steps.plan, steps.warm_up FROM steps WHERE run = ? ORDER BY step").value();
  rows.bind(run);
  std::vector<std::int64_t> plans;
  std::vector<bool> warmUps;
  while (rows.next()) {
    plans.push_back(rows.isNull(0) ? -1 : rows.integer(0));
    warmUps.push_back(rows.integer(1) != 0);
  }
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_NE(plans[0], plans[1]);
  EXPECT_EQ(plans[2], plans[0]);
  EXPECT_EQ(plans[3], -1);
  EXPECT_EQ(warmUps, (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(project.connection().integer("SELECT count(*) FROM lost WHERE what = 'plans'").value(), 1);
  EXPECT_EQ(project.connection().integer("SELECT count(*) FROM plans").value(), 2);
}

TEST(Recorder, NotANumberStaysNotANumber) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun({});
  for (double loss : {1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    snapshot::StepRecord step;
    step.set_step(static_cast<std::int64_t>(loss == 1.0 ? 0 : std::isnan(loss) ? 1 : 2));
    step.set_has_loss(true);
    step.set_loss(loss);
    recorder->step(step);
  }
  ASSERT_TRUE(recorder->flush());
  const auto steps = readSteps(Project::openReadOnly(folder / "a.stepscope").value(), run).value();
  EXPECT_EQ(steps.at(0).loss, 1.0);
  EXPECT_TRUE(std::isnan(*steps.at(1).loss));
  EXPECT_TRUE(std::isinf(*steps.at(2).loss));
  EXPECT_FALSE(steps.at(0).gradientNorm.has_value());
}

TEST(Recorder, BuildsThatRunAgainAreNewRows) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun(testing::sampleRunInfo());
  recorder->graph(testing::sampleGraph({1, 0}));
  recorder->phases(testing::samplePhases());
  recorder->beginBuild();
  recorder->graph(testing::sampleGraph({2, 0}));
  recorder->phases(testing::samplePhases());
  recorder->options({});
  ASSERT_TRUE(recorder->flush());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_EQ(readPhases(project, run, 0)->size(), readPhases(project, run, 1)->size());
  EXPECT_EQ(readPhases(project, run)->front().build, 1);
  EXPECT_EQ(listGraphs(project, run)->at(0).build, 0);
  EXPECT_EQ(listGraphs(project, run)->at(1).build, 1);
  EXPECT_EQ(readPhaseHistory(project)->size(), 20u);
  const auto deep = readPhaseHistory(project, 8);
  ASSERT_TRUE(deep);
  EXPECT_GT(deep->size(), 20u);
  EXPECT_TRUE(std::any_of(deep->begin(), deep->end(),
                          [](const auto& p) { return p.depth == 1 && p.name.find('/') != std::string::npos; }));
}

TEST(Recorder, StepThatRunsAgainIsShownAsLastExecuted) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun({});
  for (double loss : {3.0, 2.0}) {
    snapshot::StepRecord step;
    step.set_has_loss(true);
    step.set_loss(loss);
    recorder->step(step);
  }
  ASSERT_TRUE(recorder->flush());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_EQ(listRuns(project)->at(0).takenBack, 1);
  ASSERT_EQ(readSteps(project, run)->size(), 1u);
  EXPECT_EQ(readSteps(project, run)->at(0).loss, 2.0);
}

// Eight steps, a rewind to step 3, two more: five stand. A rewind that nothing followed yet is told by who made it.
TEST(Recorder, StepsThatARewindTookBackDoNotStand) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun({});
  double loss = 100;
  for (const int number : {0, 1, 2, 3, 4, 5, 6, 7, 3, 4}) {
    snapshot::StepRecord step;
    step.set_step(number);
    step.set_has_loss(true);
    step.set_loss(--loss);
    recorder->step(step);
  }
  ASSERT_TRUE(recorder->flush());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  const auto steps = readSteps(project, run).value();
  std::vector<double> losses;
  for (const StepRow& step : steps) losses.push_back(*step.loss);
  EXPECT_EQ(losses, (std::vector<double>{99, 98, 97, 91, 90}));
  EXPECT_EQ(readTiming(project, run)->steps, 4) << "but for the first, which is warm-up";
  const RunRow row = listRuns(project)->front();
  EXPECT_EQ(row.steps, 5);
  EXPECT_EQ(row.takenBack, 5);
  EXPECT_EQ(row.firstLoss, 99);
  EXPECT_EQ(row.lastLoss, 90);
  const Standing live{run, 2};
  EXPECT_EQ(listRuns(project, live)->front().steps, 2);
  EXPECT_EQ(listRuns(project, live)->front().lastLoss, 98);
  const auto compared = compareRuns(project, run, project, run, {}, live);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->steps.both, 2);
  EXPECT_EQ(compared->a.steps, 2);
}

snapshot::StepRecord numbered(int number) {
  snapshot::StepRecord step;
  step.set_step(number);
  step.set_has_loss(true);
  step.set_loss(number);
  step.set_ns(1000);
  auto* gradient = step.add_statistics();
  gradient->set_kind("gradient");
  gradient->set_value(5);
  gradient->set_of("w");
  return step;
}

std::vector<std::int64_t> alertSteps(const Project& project, std::int64_t run) {
  std::vector<std::int64_t> steps;
  const auto alerts = readAlerts(project, run);
  for (const AlertRow& alert : *alerts) steps.push_back(alert.step);
  return steps;
}

std::vector<std::int64_t> statisticSteps(const Project& project, std::int64_t run) {
  std::vector<std::int64_t> steps;
  const auto recorded = readRecordedStatistics(project, run, 1000);
  for (const auto& [step, statistics] : *recorded)
    if (!statistics.empty()) steps.push_back(step);
  return steps;
}

// One rule for all that is recorded of a step: what it was, what was noted of its values, what was told of it.
TEST(Recorder, ARewindTakesBackAlertsStatisticsAndTimesToo) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun({});
  const auto alert = [&](int step) {
    snapshot::Alert alert;
    alert.set_step(step);
    alert.set_code("edited");
    recorder->alert(alert);
  };
  alert(-1);
  for (int number = 0; number < 8; ++number) recorder->step(numbered(number));
  alert(2), alert(6);
  recorder->tensorStats(2, 9, "watched", {});
  recorder->tensorStats(6, 9, "watched", {});
  recorder->takenBack(5);
  ASSERT_TRUE(recorder->flush());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_EQ(readSteps(project, run)->size(), 5u) << "before a step followed, too";
  EXPECT_EQ(listRuns(project)->front().takenBack, 3);
  EXPECT_EQ(listRuns(project)->front().totalStepNs, 5000);
  EXPECT_EQ(listRuns(project)->front().lastLoss, 4);
  alert(3);  // of the state before the step that comes next: nothing took it back
  recorder->takenBack(3);
  alert(3);
  recorder->step(numbered(3));
  ASSERT_TRUE(recorder->flush());
  EXPECT_EQ(readSteps(project, run)->size(), 4u);
  EXPECT_EQ(alertSteps(project, run), (std::vector<std::int64_t>{-1, 2, 3}));
  EXPECT_EQ(statisticSteps(project, run), (std::vector<std::int64_t>{0, 1, 2, 3}));
  ASSERT_EQ(readWatchedStatistics(project, run, 10)->size(), 1u);
  EXPECT_EQ(readWatchedStatistics(project, run, 10)->front().step, 2);
  EXPECT_EQ(readTiming(project, run)->step.n, 3);
  EXPECT_EQ(readStepTimes(project)->at(run).n, 3);
  EXPECT_EQ(project.connection().integer("SELECT count(*) FROM rewinds").value(), 1) << "the later one says it of both";
}

// A file of a version that does not say where the run went back.
TEST(Recorder, WithoutTheTableOfRewindsWhatLiesBehindTheNewestStepWasTakenBack) {
  const TemporaryFolder folder;
  const auto path = folder / "a.stepscope";
  std::int64_t run = 0;
  {
    auto recorder = Recorder::start(Project::create(path).value()).value();
    run = recorder->beginRun({});
    for (const int number : {0, 1, 2, 3, 4, 5, 6, 7, 3, 4}) recorder->step(numbered(number));
    for (const int step : {4, 5, 7, 100}) {
      snapshot::Alert alert;
      alert.set_step(step);
      recorder->alert(alert);
    }
    ASSERT_TRUE(recorder->close());
  }
  {
    const Connection connection = Connection::open(path.string(), Connection::Mode::kWrite).value();
    ASSERT_TRUE(connection.execute("DROP TABLE rewinds; PRAGMA user_version = 15"));
  }
  const auto project = Project::openReadOnly(path);
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_EQ(readSteps(*project, run)->size(), 5u);
  EXPECT_EQ(statisticSteps(*project, run), (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(alertSteps(*project, run), (std::vector<std::int64_t>{4, 5, 100})) << "5 goes on; 100 was never recorded";
}

}  // namespace
}  // namespace stepscope::storage
