// What waits for a file: the queue of a recorder, who is kept waiting and what is lost.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "storage/queries.h"
#include "storage/recorder.h"
#include "storage/sqlite.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

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
  const RunRow row = readRun(Project::openReadOnly(folder / "a.stepscope").value(), run).value();
  EXPECT_EQ(row.steps + row.takenBack, 400) << "their numbers come in any order, as after rewinds";
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
