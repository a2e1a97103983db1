#include "storage/recorder.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "storage/comparison.h"
#include "storage/queries.h"
#include "storage/sqlite.h"
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
  EXPECT_EQ(readSteps(project, run, true)->size(), 2u);
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
  EXPECT_EQ(standing(readSteps(project, run, true).value()).size(), 5u);
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

TEST(Recorder, CommitsByItselfWithinAQuarterOfASecondOrSo) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  recorder->beginRun({});
  recorder->step({});
  // Generous: the machine may be busy. What counts is that nobody has to ask.
  for (int i = 0; i < 6'000 && recorder->state().committedSteps == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(recorder->state().committedSteps, 1);
}

TEST(Recorder, FullQueueDropsDetailAndSaysSoInTheFile) {
  const TemporaryFolder folder;
  RecorderSettings settings;
  settings.queueBytes = 4096;
  settings.commitInterval = std::chrono::seconds(60);
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value(), settings).value();
  const auto run = recorder->beginRun({});
  const auto plan = testing::samplePlan({8, 0});
  for (int step = 0; step < 400; ++step) recorder->step(testing::sampleStep(plan, step));
  recorder->flush();
  recorder->close();
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  const auto lost = readLost(project, run).value();
  ASSERT_FALSE(lost.empty());
  std::int64_t lostSpans = 0, lostSteps = 0;
  for (const LostRow& row : lost) {
    EXPECT_FALSE(row.advice.empty());
    EXPECT_LE(row.firstStep, row.lastStep);
    if (row.what == "spans") lostSpans += row.amount;
    if (row.what == "steps") lostSteps += row.amount;
  }
  const auto steps = readSteps(project, run).value();
  EXPECT_EQ(static_cast<std::int64_t>(steps.size()) + lostSteps, 400);
  std::int64_t kept = 0;
  for (const StepRow& step : steps) kept += static_cast<std::int64_t>(readSpans(project, step.id)->size());
  EXPECT_EQ(kept + lostSpans + lostSteps * plan.instructions_size(), 400 * plan.instructions_size());
}

// Who waits for room loses nothing, however small the queue is, and whatever fills it.
TEST(Recorder, StepsThatMayWaitAreAllRecorded) {
  const TemporaryFolder folder;
  RecorderSettings settings;
  settings.queueBytes = 1024;  // less than one step with its spans
  settings.commitInterval = std::chrono::seconds(60);
  settings.stepPatience = std::chrono::minutes(10);
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value(), settings).value();
  const auto run = recorder->beginRun({});
  recorder->graph(testing::sampleGraph({8, 0}));
  const auto plan = testing::samplePlan({8, 0});
  for (int step = 0; step < 100; ++step) recorder->step(testing::sampleStep(plan, step));
  const RecorderState state = recorder->state();
  EXPECT_GT(state.waits, 0) << "one step at a time fits";
  EXPECT_GT(state.waitedNs, 0);
  EXPECT_EQ(state.lost, 0);
  ASSERT_TRUE(recorder->close());
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_TRUE(readLost(project, run)->empty());
  const auto steps = readSteps(project, run).value();
  ASSERT_EQ(steps.size(), 100u);
  for (const StepRow& step : steps)
    EXPECT_EQ(static_cast<int>(readSpans(project, step.id)->size()), plan.instructions_size());
}

// However long a run is: what the recorder has taken from the heap between two steps is what it had before. One byte a step
// that stayed would be 36,000.
TEST(Recorder, HoldsNoMoreAfterManySteps) {
  const TemporaryFolder folder;
  RecorderSettings settings;
  settings.queueBytes = 1 << 16;
  settings.stepPatience = std::chrono::minutes(10);
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value(), settings).value();
  auto info = testing::sampleRunInfo();
  auto& keep = info.options.emplace_back();
  keep.set_name("record.keep");
  keep.set_value("256");
  recorder->beginRun(info);
  const auto plan = testing::samplePlan({1, 0});
  recorder->plan(plan);
  std::int64_t step = 0;
  const auto heldAfter = [&](std::int64_t steps) {
    while (step < steps) recorder->step(testing::sampleStep(plan, step++));
    EXPECT_TRUE(recorder->flush());
    recorder->viewState("", "");  // when it is written, what was written before has been freed
    EXPECT_TRUE(recorder->flush());
    return static_cast<std::int64_t>(mallinfo2().uordblks);
  };
  const std::int64_t before = heldAfter(4'000), after = heldAfter(40'000);
  EXPECT_LT(after - before, 100'000) << before << " bytes after 4,000 steps, " << after << " after 40,000";
  EXPECT_EQ(recorder->state().lost, 0);
  ASSERT_TRUE(recorder->close());
}

// The wait has an end: nobody stands still for a file that cannot be written, and one wait for nothing is enough.
TEST(Recorder, NoStepWaitsForAFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  RecorderSettings settings;
  settings.queueBytes = 1 << 16;
  settings.stepPatience = std::chrono::hours(1);
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value(), settings).value();
  const auto run = recorder->beginRun({});
  ASSERT_TRUE(recorder->flush());
  const Connection other = Connection::open((folder / "a.stepscope").string(), Connection::Mode::kWrite).value();
  ASSERT_TRUE(other.execute("BEGIN IMMEDIATE"));
  recorder->step({});
  EXPECT_EQ(recorder->flush().error().code, ErrorCode::kLocked);
  for (int i = 1; i < 2000; ++i) {
    snapshot::StepRecord step;
    step.set_step(i);
    recorder->step(step);
  }
  EXPECT_EQ(recorder->state().waits, 0) << "this took hours otherwise";
  ASSERT_TRUE(other.execute("ROLLBACK"));
  while (!recorder->flush()) {
  }
  EXPECT_GT(recorder->state().lostSteps, 0);
  for (int i = 2000; i < 2010; ++i) {
    snapshot::StepRecord step;
    step.set_step(i);
    recorder->step(step);
  }
  const std::int64_t lostSteps = recorder->state().lostSteps;
  (void)recorder->close();
  const auto steps = readSteps(Project::openReadOnly(folder / "a.stepscope").value(), run).value();
  EXPECT_EQ(static_cast<std::int64_t>(steps.size()) + lostSteps, 2010);
  EXPECT_EQ(steps.back().step, 2009) << "recording goes on by itself";
}

TEST(Recorder, AWaitForNothingIsNotRepeatedUntilSomethingIsWritten) {
  const TemporaryFolder folder;
  RecorderSettings settings;
  settings.queueBytes = 1 << 12;
  settings.stepPatience = std::chrono::milliseconds(1);
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value(), settings).value();
  recorder->beginRun({});
  ASSERT_TRUE(recorder->flush());
  const Connection other = Connection::open((folder / "a.stepscope").string(), Connection::Mode::kWrite).value();
  ASSERT_TRUE(other.execute("BEGIN IMMEDIATE"));
  for (int i = 0; i < 1000; ++i) recorder->step({});
  EXPECT_LE(recorder->state().waits, 1);
  EXPECT_GT(recorder->state().lostSteps, 0);
  ASSERT_TRUE(other.execute("ROLLBACK"));
  while (!recorder->flush()) {
  }
}

TEST(Recorder, StopsWithAMessageWhenTheFileBreaksAndTheRunGoesOn) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  recorder->beginRun({});
  ASSERT_TRUE(recorder->flush());
  // Somebody overwrites the database in place.
  {
    std::FILE* file = std::fopen((folder / "a.stepscope-wal").c_str(), "r+");
    ASSERT_NE(file, nullptr);
    std::fclose(file);
    file = std::fopen((folder / "a.stepscope").c_str(), "r+");
    std::vector<char> junk(64 * 1024, '\x5a');
    std::fwrite(junk.data(), 1, junk.size(), file);
    std::fclose(file);
    std::filesystem::resize_file(folder / "a.stepscope-wal", 0);
  }
  for (int i = 0; i < 2000; ++i) recorder->step({});
  const Status status = recorder->flush();
  for (int i = 0; i < 10; ++i) recorder->step({});
  if (!status) {
    EXPECT_EQ(recorder->state().health, RecorderState::Health::kStopped);
    EXPECT_FALSE(recorder->state().message.empty());
    EXPECT_GT(recorder->state().lost, 0);
  }
}

TEST(Recorder, WaitsForAnotherProcessThatHoldsTheFile) {
  const TemporaryFolder folder;
  RecorderSettings settings;
  settings.queueBytes = 1 << 16;  // holds some 200 steps
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value(), settings).value();
  const auto run = recorder->beginRun({});
  ASSERT_TRUE(recorder->flush());
  const Connection other = Connection::open((folder / "a.stepscope").string(), Connection::Mode::kWrite).value();
  ASSERT_TRUE(other.execute("BEGIN IMMEDIATE"));
  for (int i = 0; i < 1000; ++i) {
    snapshot::StepRecord step;
    step.set_step(i);
    recorder->step(step);
  }
  EXPECT_EQ(recorder->flush().error().code, ErrorCode::kLocked);
  EXPECT_EQ(recorder->state().health, RecorderState::Health::kPaused);
  for (int i = 1000; i < 2000; ++i) {
    snapshot::StepRecord step;
    step.set_step(i);
    recorder->step(step);
  }
  ASSERT_TRUE(other.execute("ROLLBACK"));
  while (!recorder->flush()) {
  }
  EXPECT_EQ(recorder->state().health, RecorderState::Health::kRecording);
  const std::int64_t lostSteps = recorder->state().lostSteps;
  EXPECT_GT(lostSteps, 0);
  const Status closed = recorder->close();
  ASSERT_FALSE(closed) << "steps are missing";
  EXPECT_EQ(closed.error().code, ErrorCode::kLocked);
  const auto project = Project::openReadOnly(folder / "a.stepscope").value();
  EXPECT_EQ(static_cast<std::int64_t>(readSteps(project, run)->size()) + lostSteps, 2000);
  std::int64_t told = 0;
  const auto lost = readLost(project, run).value();
  for (const LostRow& row : lost) {
    if (row.what != "steps") continue;
    told += row.amount;
    if (row.firstStep >= 1000) {
      EXPECT_NE(row.reason.find("locked"), std::string::npos) << row.reason;
    }
  }
  EXPECT_EQ(told, lostSteps);
}

TEST(Recorder, RefusesAProjectOpenedForReading) {
  const TemporaryFolder folder;
  testing::recordSample(folder / "a.stepscope", {1, 1});
  EXPECT_EQ(Recorder::start(Project::openReadOnly(folder / "a.stepscope").value()).error().code, ErrorCode::kReadOnly);
}

TEST(Recorder, ViewStateIsKept) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  recorder->viewState("layout", std::string("a\0b", 3));
  ASSERT_TRUE(recorder->close());
  EXPECT_EQ(readViewState(Project::openReadOnly(folder / "a.stepscope").value(), "layout"), std::string("a\0b", 3));
}

TEST(Recorder, CallsFromManyThreadsAllArrive) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  const auto run = recorder->beginRun({});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        snapshot::StepRecord step;
        step.set_step(t * 100 + i);
        recorder->step(step);
        if (i % 25 == 0) (void)recorder->flush();
        (void)recorder->state();
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(recorder->close());
  EXPECT_EQ(readSteps(Project::openReadOnly(folder / "a.stepscope").value(), run, true)->size(), 400u);
}

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

// The promise is 2 % of a step of 5 ms with some 85 instructions, so 100 µs. What a machine makes of it differs, so the
// yardstick is a copy of the record on the same machine at the same time: handing over a record costs a few copies of it,
// not a commit.
TEST(Recorder, CostsTheCallerAFewCopiesOfTheRecord) {
  const TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "a.stepscope").value()).value();
  recorder->beginRun({});
  const auto plan = testing::samplePlan({4, 0});
  const auto step = testing::sampleStep(plan, 1);
  std::vector<std::int64_t> times, copies;
  std::size_t bytes = 0;
  for (int i = 0; i < 201; ++i) {
    const std::int64_t begin = now();
    recorder->step(step);
    const std::int64_t between = now();
    const snapshot::StepRecord copy = step;
    copies.push_back(now() - between);
    times.push_back(between - begin);
    bytes += copy.ByteSizeLong();
  }
  EXPECT_GT(bytes, 0u);
  EXPECT_LT(statisticsOf(times).median, 100'000 + 8 * statisticsOf(copies).median);
}

}  // namespace
}  // namespace stepscope::storage
