#include "storage/retention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "storage/schema.h"
#include "storage/sql.h"
#include "storage/timing.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

std::int64_t number(const Project& project, const std::string& sql) {
  return std::get<std::int64_t>(runSql(project, sql)->rows.at(0).at(0));
}

std::unique_ptr<Recorder> recording(const std::filesystem::path& path, const std::string& keep) {
  auto recorder = Recorder::start(Project::openForWriting(path).value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  snapshot::Option option;
  option.set_name("record.keep");
  option.set_value(keep);
  recorder->options({option});
  recorder->plan(testing::samplePlan({1, 0}));
  return recorder;
}

TEST(Retention, OldStepsKeepFewSpans) {
  const TemporaryFolder folder;
  constexpr int kSteps = 6000, kKeep = 100;
  for (const std::string keep : {"100", "all"}) {
    auto recorder = recording(folder / keep, keep);
    const auto plan = testing::samplePlan({1, 0});
    for (int step = 0; step < kSteps; ++step) {
      recorder->step(testing::sampleStep(plan, step));
      if (step % 500 == 0) {
        EXPECT_TRUE(recorder->flush());
      }
    }
    ASSERT_TRUE(recorder->close());
  }
  const Project thin = Project::openReadOnly(folder / "100").value(), all = Project::openReadOnly(folder / "all").value();
  EXPECT_EQ(number(all, "SELECT count(*) FROM step_spans"), kSteps);
  EXPECT_EQ(number(thin, "SELECT count(*) FROM steps"), kSteps) << "the numbers of every step stay";
  const auto kept = [&](std::int64_t from, std::int64_t to) {
    return number(thin, "SELECT count(*) FROM step_spans JOIN steps ON id = step_id WHERE step >= " + std::to_string(from) +
                            " AND step < " + std::to_string(to));
  };
  EXPECT_EQ(kept(kSteps - kKeep, kSteps), kKeep);
  EXPECT_EQ(kept(4400, 5600), 1200 / 16) << "thinned once a few hundred steps";
  EXPECT_EQ(kept(0, 3840), 3840 / 256);
  const std::string bytes = "SELECT sum(length(data)) FROM step_spans";
  EXPECT_LT(number(thin, bytes), number(all, bytes) / 8);
  EXPECT_LT(std::filesystem::file_size(folder / "100"), std::filesystem::file_size(folder / "all"));
  // What is left says what an operator takes in a step.
  const Timing few = readTiming(thin, 1).value(), many = readTiming(all, 1).value();
  EXPECT_EQ(few.steps, many.steps);
  EXPECT_LT(few.sampledSteps, many.sampledSteps);
  ASSERT_EQ(few.phases.size(), many.phases.size());
  for (std::size_t i = 0; i < few.phases.size(); ++i) {
    EXPECT_EQ(few.phases[i].time.n, few.sampledSteps);
    EXPECT_NEAR(few.phases[i].time.mean, many.phases[i].time.mean, 0.1 * many.phases[i].time.mean);
  }
}

// Of 10 watched values, as of spans: else they are most of a long run. STEPSCOPE_GROWTH_STEPS measures one.
TEST(Retention, OldStepsKeepFewStatisticsOfWatchedValues) {
  const TemporaryFolder folder;
  constexpr int kKeep = 100, kValues = 10;
  const char* asked = std::getenv("STEPSCOPE_GROWTH_STEPS");
  const int steps = asked ? std::atoi(asked) : 6000;
  for (const std::string keep : {asked ? "4096" : "100", "all"}) {
    auto recorder = recording(folder / keep, keep);
    for (int number = 0; number < steps; ++number) {
      snapshot::StepRecord step;
      step.set_step(number);
      step.set_ns(1000);
      for (int value = 0; value < kValues; ++value) {
        auto& watched = *step.add_statistics();
        watched.set_kind("watched");
        watched.set_value(value);
        watched.set_name("h.0.attn.value" + std::to_string(value));
        watched.set_of(watched.name());
        auto& statistics = *watched.mutable_statistics();
        statistics.set_count(1024);
        statistics.set_max(1.0 / (number + value + 1));
        statistics.set_mean(0.1 / (number + value + 1));
        statistics.set_std(0.2 / (number + value + 1));
        statistics.set_norm(3.0 / (number + value + 1));
      }
      auto& sampled = *step.add_statistics();
      sampled = step.statistics(0);
      sampled.set_kind("parameter");
      recorder->step(step);
      if (number % 500 == 0) {
        EXPECT_TRUE(recorder->flush());
      }
    }
    ASSERT_TRUE(recorder->close());
    if (asked) std::printf("record.keep %s: %ju bytes\n", keep.c_str(), std::filesystem::file_size(folder / keep));
  }
  if (asked) return;
  const Project thin = Project::openReadOnly(folder / "100").value(), all = Project::openReadOnly(folder / "all").value();
  const auto kept = [&](const Project& project, int from, int to, const char* kind) {
    return number(project, fmt::format("SELECT count(*) FROM tensor_stats WHERE kind = '{}' AND step >= {} AND step < {}",
                                       kind, from, to));
  };
  EXPECT_EQ(kept(all, 0, steps, "watched"), steps * kValues);
  EXPECT_EQ(kept(thin, steps - kKeep, steps, "watched"), kKeep * kValues);
  EXPECT_EQ(kept(thin, 4400, 5600, "watched"), 1200 / 16 * kValues);
  EXPECT_EQ(kept(thin, 0, 3840, "watched"), 3840 / 256 * kValues);
  EXPECT_EQ(kept(thin, 0, steps, "parameter"), steps) << "those have a rate of their own (record.statistics)";
  EXPECT_LT(std::filesystem::file_size(folder / "100"), std::filesystem::file_size(folder / "all") / 3);
}

TEST(Retention, ADeletedRunGivesItsSpaceBack) {
  const TemporaryFolder folder;
  const auto path = folder / "p.stepscope";
  testing::recordSample(path, {1, 10});
  const auto small = std::filesystem::file_size(path);
  {
    auto recorder = recording(path, "all");
    const auto plan = testing::samplePlan({4, 0});
    for (int step = 0; step < 300; ++step) recorder->step(testing::sampleStep(plan, step));
    ASSERT_TRUE(recorder->close());
  }
  const auto large = std::filesystem::file_size(path);
  {
    const Project reader = Project::openReadOnly(path).value();
    EXPECT_EQ(deleteRun(reader, 2).error().code, ErrorCode::kReadOnly);
  }
  {
    const Project project = Project::openForWriting(path).value();
    EXPECT_EQ(deleteRun(project, 7).error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(deleteRun(project, 2));
  }
  EXPECT_LT(std::filesystem::file_size(path), small + (large - small) / 10);
  const Project project = Project::openReadOnly(path).value();
  for (const Table& table : tables())
    for (const Column& column : table.columns)
      if (column.name == "run") {
        EXPECT_EQ(number(project, "SELECT count(*) FROM " + std::string(table.name) + " WHERE run = 2"), 0) << table.name;
      }
  EXPECT_EQ(number(project, "SELECT count(*) FROM steps WHERE run = 1"), 10);
  EXPECT_EQ(readTiming(project, 1)->step.n, 9);
}

TEST(Retention, AnEarlierRunIsForgottenWhileOneIsRecorded) {
  const TemporaryFolder folder;
  const auto path = folder / "p.stepscope";
  testing::recordSample(path, {40, 200});
  const auto plan = testing::samplePlan({1, 0});
  auto recorder = recording(path, "all");
  recorder->step(testing::sampleStep(plan, 0));
  const auto refused = recorder->forgetRun(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("run '2': it is being recorded"), std::string::npos) << refused.error().message;
  ASSERT_TRUE(recorder->flush());
  const auto before = std::filesystem::file_size(path);
  ASSERT_TRUE(recorder->forgetRun(1));
  {
    const Project reader = Project::openReadOnly(path).value();
    for (const Table& table : tables())
      for (const Column& column : table.columns)
        if (column.name == "run") {
          EXPECT_EQ(number(reader, "SELECT count(*) FROM " + std::string(table.name) + " WHERE run = 1"), 0) << table.name;
        }
    EXPECT_EQ(number(reader, "SELECT count(*) FROM runs"), 1);
  }
  auto alone = recording(folder / "alone.stepscope", "all");
  for (int step = 1; step < 100; ++step) {
    recorder->step(testing::sampleStep(plan, step));
    alone->step(testing::sampleStep(plan, step));
  }
  ASSERT_TRUE(recorder->close());
  ASSERT_TRUE(alone->close());
  const Project project = Project::openReadOnly(path).value();
  EXPECT_EQ(number(project, "SELECT count(*) FROM steps WHERE run = 2"), 100);
  EXPECT_EQ(number(project, "SELECT count(*) FROM steps"), 100);
  EXPECT_LT(std::filesystem::file_size(path), before + std::filesystem::file_size(folder / "alone.stepscope") / 4)
      << "the pages of the run that is gone are written again";
}

TEST(Retention, BackupsOfMigrationsExpire) {
  const TemporaryFolder folder;
  const auto path = folder / "p.stepscope";
  testing::recordSample(path, {1, 2});
  const std::filesystem::path old = path.string() + ".v1.bak", fresh = path.string() + ".v2.bak";
  for (const auto& backup : {old, fresh}) std::ofstream(backup) << "copy";
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 31));
  (void)Project::openForWriting(path).value();
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(fresh));
}

// A query that sorts more than memory holds is stopped, and a recorder beside it goes on.
TEST(Retention, AGreedyQueryStarvesNoRecorder) {
  const TemporaryFolder folder;
  auto recorder = recording(folder / "p.stepscope", "all");
  const auto plan = testing::samplePlan({1, 0});
  recorder->step(testing::sampleStep(plan, 0));
  ASSERT_TRUE(recorder->flush());
  const Project reader = Project::openReadOnly(folder / "p.stepscope").value();
  const auto greedy = runSql(reader,
                             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000) SELECT i, "
                             "hex(randomblob(5000)) h FROM n ORDER BY h",
                             {.time = std::chrono::minutes(2)});
  ASSERT_FALSE(greedy);
  EXPECT_EQ(greedy.error().code, ErrorCode::kLimitExceeded);
  EXPECT_NE(greedy.error().message.find("256 MiB of memory"), std::string::npos) << greedy.error().message;
  EXPECT_TRUE(runSql(reader, "SELECT count(*) FROM steps")) << "the next query works";
  recorder->step(testing::sampleStep(plan, 1));
  ASSERT_TRUE(recorder->flush());
  EXPECT_EQ(recorder->state().health, RecorderState::Health::kRecording);
}

}  // namespace
}  // namespace stepscope::storage
