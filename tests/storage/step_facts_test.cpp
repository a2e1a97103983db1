#include "storage/step_facts.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "storage/queries.h"
#include "storage/recorded_step.h"
#include "storage/recorder.h"
#include "storage/sqlite.h"
#include "storage/timing.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::sampleStep;
using testing::TemporaryFolder;

// Ten steps of the sample, step 5 executed again: those after it are taken back.
class StepFacts : public ::testing::Test {
 protected:
  void SetUp() override {
    auto recorder = Recorder::start(Project::create(folder_ / "run.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    plan_ = testing::samplePlan({1, 10});
    recorder->plan(plan_);
    for (int step = 0; step < 10; ++step) recorder->step(sampleStep(plan_, step));
    snapshot::StepRecord again = sampleStep(plan_, 5);
    again.mutable_inputs(0)->mutable_statistics()->set_max(77);
    again.mutable_row_losses()->set_values(2, std::numeric_limits<double>::quiet_NaN());
    again.mutable_densities(0)->set_valid(1);
    again.mutable_statistics(0)->mutable_statistics()->set_norm(99);
    recorder->step(again);
    ASSERT_TRUE(recorder->close());
  }
  Project open() const { return Project::openReadOnly(folder_ / "run.stepscope").value(); }

  TemporaryFolder folder_;
  snapshot::Plan plan_;
};

TEST_F(StepFacts, TokensAreThoseOfTheStepAsLastExecuted) {
  const Project project = open();
  const auto steps = readSteps(project, 1).value();
  const auto tokens = readTokenCounts(project, 1, steps);
  ASSERT_TRUE(tokens) << tokens.error().message;
  ASSERT_EQ(tokens->size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(tokens->at(i).all, 256);
    EXPECT_EQ(tokens->at(i).trained, steps[i].step == 5 ? 1 : 200 + steps[i].step % 7);
    EXPECT_EQ(tokens->at(i).padding, 256 - tokens->at(i).trained);
  }
}

TEST_F(StepFacts, DensitiesOfEveryStepComeBack) {
  const Project project = open();
  const auto steps = readSteps(project, 1).value();
  const auto densities = readDensities(project, 1, 10);
  ASSERT_TRUE(densities) << densities.error().message;
  ASSERT_EQ(densities->size(), 6u);
  for (const StepRow& step : steps) {
    ASSERT_EQ(densities->at(step.id).size(), 1u);
    const auto& d = densities->at(step.id).front();
    const snapshot::InputDensity wanted = sampleStep(plan_, step.step).densities(0);
    if (step.step == 5) {
      EXPECT_EQ(d.valid(), 1) << "a step that was executed again counts as last executed";
    } else {
      EXPECT_EQ(d.SerializeAsString(), wanted.SerializeAsString());
    }
  }
}

TEST_F(StepFacts, BatchesComeBackWithTheirContents) {
  const Project project = open();
  const auto steps = readSteps(project, 1).value();
  const auto batches = readBatches(project, 1, 10, 1 << 20);
  ASSERT_TRUE(batches) << batches.error().message;
  ASSERT_EQ(batches->size(), 2u);  // steps 0 and 5
  const auto& input = batches->at(steps[0].id).front();
  const auto wanted = sampleStep(plan_, 0).inputs(0);
  EXPECT_EQ(input.data(), wanted.data());
  EXPECT_EQ(std::vector(input.dims().begin(), input.dims().end()), (std::vector<std::int64_t>{2, 128}));
  EXPECT_EQ(std::vector(input.extent().begin(), input.extent().end()), (std::vector<std::int64_t>{1, 128}));
  EXPECT_EQ(input.statistics().zeros(), 56);
  EXPECT_EQ(input.step(), 0);
  EXPECT_EQ(batches->at(steps[5].id).front().statistics().max(), 77);
  const auto newest = readBatches(project, 1, 10, 1024);
  ASSERT_TRUE(newest);
  EXPECT_TRUE(newest->at(steps[0].id).front().data().empty()) << "the newest contents come first where they are too much";
  EXPECT_FALSE(newest->at(steps[5].id).front().data().empty());
  EXPECT_EQ(project.connection().integer("SELECT kept_bytes FROM batch_inputs LIMIT 1").value(), 1024);
}

TEST_F(StepFacts, RowLossesComeBackAndTheWorstIsAColumn) {
  const Project project = open();
  const auto steps = readSteps(project, 1).value();
  const auto losses = readRowLosses(project, 1, 10);
  ASSERT_TRUE(losses) << losses.error().message;
  ASSERT_EQ(losses->size(), 2u);
  EXPECT_EQ(losses->at(steps[0].id).SerializeAsString(), sampleStep(plan_, 0).row_losses().SerializeAsString());
  EXPECT_TRUE(std::isnan(losses->at(steps[5].id).values(2)));
  EXPECT_EQ(readRowLosses(project, 1, 1)->begin()->second.step(), 5);
  auto rows = project.connection()
                  .prepare("SELECT worst_row, worst, counted, not_finite, mean FROM row_losses ORDER BY step_id")
                  .value();
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), 5);
  EXPECT_EQ(rows.real(1), 9.5);
  EXPECT_EQ(rows.integer(2), 7) << "a row that the loss ignores does not count";
  EXPECT_EQ(rows.integer(3), 0);
  EXPECT_NEAR(rows.real(4), (2 + 2.1 + 2.2 + 2.3 + 2.4 + 9.5 + 2.6) / 7, 1e-12);
  ASSERT_TRUE(rows.next());
  ASSERT_TRUE(rows.next());  // step 5 again
  EXPECT_EQ(rows.integer(0), 2) << "NaN is worse than every number";
  EXPECT_TRUE(std::isnan(rows.real(1)));
  EXPECT_EQ(rows.integer(3), 1);
}

TEST_F(StepFacts, AStepComesBackWhole) {
  const Project project = open();
  const auto read = readRecordedStep(project, 1, 0, 1 << 20);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(*read);
  const snapshot::StepRecord wanted = sampleStep(plan_, 0);
  const snapshot::StepRecord& step = **read;
  EXPECT_EQ(step.loss(), wanted.loss());
  EXPECT_EQ(step.begin_ns(), wanted.begin_ns());
  EXPECT_EQ(step.ns(), wanted.ns());
  EXPECT_TRUE(step.warm_up());
  ASSERT_EQ(step.spans_size(), wanted.spans_size());
  for (int i = 0; i < wanted.spans_size(); ++i)
    EXPECT_EQ(step.spans(i).SerializeAsString(), wanted.spans(i).SerializeAsString()) << i;
  ASSERT_EQ(step.statistics_size(), wanted.statistics_size());
  for (int i = 0; i < wanted.statistics_size(); ++i)
    EXPECT_EQ(step.statistics(i).SerializeAsString(), wanted.statistics(i).SerializeAsString()) << i;
  EXPECT_EQ(step.densities(0).SerializeAsString(), wanted.densities(0).SerializeAsString());
  EXPECT_EQ(step.inputs(0).data(), wanted.inputs(0).data());
  EXPECT_EQ(step.row_losses().SerializeAsString(), wanted.row_losses().SerializeAsString());
  EXPECT_TRUE(readRecordedStep(project, 1, 0, 10).value()->inputs(0).data().empty()) << "more than may be read";
  EXPECT_EQ(readRecordedStep(project, 1, 5, 1 << 20).value()->inputs(0).statistics().max(), 77) << "as last executed";
  const auto without = readRecordedStep(project, 1, 3, 1 << 20);
  ASSERT_TRUE(without && *without);
  EXPECT_EQ((*without)->inputs_size(), 0);
  EXPECT_FALSE((*without)->has_row_losses());
  EXPECT_GT((*without)->spans_size(), 0);
  for (const auto& [run, number] : {std::pair(1, 10), std::pair(1, -1), std::pair(2, 0)})
    EXPECT_FALSE(readRecordedStep(project, run, number, 1 << 20).value()) << run << ' ' << number;
}

TEST_F(StepFacts, StatisticsComeBackAndAreThinnedOutByWholeSteps) {
  const Project project = open();
  const auto all = readRecordedStatistics(project, 1, 1000);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 2u);
  const auto wanted = sampleStep(plan_, 0);
  ASSERT_EQ(all->at(0).size(), static_cast<std::size_t>(wanted.statistics_size()));
  for (int i = 0; i < wanted.statistics_size(); ++i)
    EXPECT_EQ(all->at(0)[static_cast<std::size_t>(i)].SerializeAsString(), wanted.statistics(i).SerializeAsString());
  EXPECT_EQ(all->at(5).front().statistics().norm(), 99);
  const auto few = readRecordedStatistics(project, 1, 1);
  ASSERT_TRUE(few);
  for (const auto& [step, values] : *few) EXPECT_EQ(values.size(), 5u) << "what is kept of a step is whole";
  EXPECT_EQ(few->rbegin()->first, 5) << "the newest step stays";
}

TEST_F(StepFacts, WatchedValuesDoNotPushOutWhatFewStepsRecorded) {
  {
    const Connection connection = Connection::open((folder_ / "run.stepscope").string(), Connection::Mode::kWrite).value();
    ASSERT_TRUE(connection.execute(
        "INSERT INTO tensor_stats SELECT NULL, run, n, 900, 'w', count, min, max, mean, std, norm, zeros, nan, inf, "
        "negative, "
        "histogram, 'watched', 'w', -1 FROM (SELECT * FROM tensor_stats LIMIT 1), (WITH RECURSIVE c(n) AS (SELECT 0 UNION "
        "ALL SELECT n + 1 FROM c WHERE n < 199) SELECT n FROM c)"));
  }
  const auto few = readRecordedStatistics(open(), 1, 12);
  ASSERT_TRUE(few) << few.error().message;
  std::size_t watched = 0;
  for (const auto& [step, values] : *few)
    watched += std::ranges::count_if(values, [](const auto& v) { return v.kind() == "watched" && v.of() == "w"; });
  EXPECT_GT(watched, 6u);
  EXPECT_LT(watched, 20u);
  EXPECT_EQ(few->rbegin()->first, 199) << "the newest step stays";
  for (const std::int64_t step : {0, 5}) {
    ASSERT_TRUE(few->contains(step));
    EXPECT_EQ(std::ranges::count_if(few->at(step), [](const auto& v) { return v.kind() != "watched"; }), 5) << step;
  }
  const auto record = readRecordedStep(open(), 1, 5, 0);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->statistics_size(), 6) << "with the watched value";
}

// Of a run that recorded statistics in every step a report shows few. Counted in instructions of the database.
TEST_F(StepFacts, StatisticsThatAreLeftOutAreNotReadWhole) {
  {
    const Connection connection = Connection::open((folder_ / "run.stepscope").string(), Connection::Mode::kWrite).value();
    ASSERT_TRUE(connection.execute(
        "INSERT INTO tensor_stats SELECT NULL, run, 10, n, 'w', count, min, max, mean, std, norm, zeros, nan, inf, "
        "negative, histogram, 'watched', 'w', -1 FROM (SELECT * FROM tensor_stats LIMIT 1), (WITH RECURSIVE c(n) AS "
        "(SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 9999) SELECT n FROM c);"
        "UPDATE tensor_stats SET step = 10 + value / 10 WHERE name = 'w'"));
  }
  const Project project = open();
  std::int64_t leftOut = 0;
  const auto work = [&](std::int64_t most) {
    std::int64_t done = 0;
    const auto count = [](void* counter) {
      ++*static_cast<std::int64_t*>(counter);
      return 0;
    };
    sqlite3_progress_handler(project.connection().handle(), 1, count, &done);
    EXPECT_TRUE(readRecordedStatistics(project, 1, most, &leftOut));
    sqlite3_progress_handler(project.connection().handle(), 0, nullptr, nullptr);
    return done;
  };
  const std::int64_t all = work(100'000);
  EXPECT_EQ(leftOut, 0);
  EXPECT_LT(work(20), all / 2);
  EXPECT_GT(leftOut, 990);
}

// A window reads some steps after each rewind. Counted in instructions of the database, which a machine that is busy does
// not change.
TEST_F(StepFacts, ReadingSomeStepsIsNoMoreWorkInALongRun) {
  const auto lengthen = [this](std::int64_t from, std::int64_t to) {
    const Connection connection = Connection::open((folder_ / "run.stepscope").string(), Connection::Mode::kWrite).value();
    for (const char* text :
         {"INSERT INTO steps SELECT NULL, run, n, plan, 2.5, learning_rate, gradient_norm, updated, samples, tokens, "
          "begin_ns, ns, planned_bytes, peak_bytes, 0, batch, 0, 0, 0, 0, 'full speed' FROM (SELECT * FROM steps WHERE "
          "step = 4), (WITH RECURSIVE c(n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM c WHERE n < ?2) SELECT n FROM c)",
          "INSERT INTO tensor_stats SELECT NULL, run, n, 900, 'w', count, min, max, mean, std, norm, zeros, nan, inf, "
          "negative, histogram, 'watched', 'w', -1 FROM (SELECT * FROM tensor_stats LIMIT 1), (WITH RECURSIVE c(n) AS "
          "(SELECT ?1 UNION ALL SELECT n + 1 FROM c WHERE n < ?2) SELECT n FROM c)"}) {
      auto rows = connection.prepare(text);
      ASSERT_TRUE(rows) << rows.error().message;
      const Status written = rows->bind(from, to).run();
      ASSERT_TRUE(written) << written.error().message;
    }
    ASSERT_TRUE(connection.execute("INSERT INTO rewinds SELECT NULL, 1, max(step), max(id), 0, 0 FROM steps"));
  };
  const auto work = [this](std::int64_t first, std::int64_t last) {
    const Project project = open();
    std::int64_t done = 0;
    const auto count = [](void* counter) {
      ++*static_cast<std::int64_t*>(counter);
      return 0;
    };
    sqlite3_progress_handler(project.connection().handle(), 1, count, &done);
    const auto rows = readStepsBetween(project, 1, first, last);
    EXPECT_TRUE(rows && static_cast<std::int64_t>(rows->size()) == last - first + 1);
    const auto statistics = readStatisticsBetween(project, 1, first, last);
    EXPECT_TRUE(statistics && static_cast<std::int64_t>(statistics->size()) == last - first + 1);
    for (const StepRow& row : rows.value_or(std::vector<StepRow>())) EXPECT_TRUE(readRecordedStep(project, row, 1 << 20));
    const auto one = readRecordedStep(project, 1, last, 1 << 20);
    EXPECT_TRUE(one && *one && (*one)->statistics_size() == 1);
    sqlite3_progress_handler(project.connection().handle(), 0, nullptr, nullptr);
    return done;
  };
  lengthen(6, 2'000);
  const std::int64_t ofShort = work(1'001, 1'064);
  lengthen(2'001, 200'000);
  const std::int64_t ofLong = work(100'001, 100'064);
  EXPECT_GT(ofShort, 64 * 10);
  EXPECT_LT(ofLong, ofShort * 3 / 2) << "the run is a hundred times as long";
}

TEST_F(StepFacts, StepsSayWhatRecordingTookAndWhatWarmUpIs) {
  const auto steps = readSteps(open(), 1).value();
  EXPECT_EQ(steps[0].recordingNs, 20'000);
  EXPECT_EQ(steps[1].recordingNs, 0);
  EXPECT_TRUE(steps[0].warmUp);
  EXPECT_FALSE(steps[1].warmUp);
  const auto times = readStepTimes(open());
  ASSERT_TRUE(times);
  EXPECT_EQ(times->at(1).n, 5) << "beside the warm-up, and without the five that were executed again";
  EXPECT_LT(times->at(1).max, steps[0].ns) << "which is slower than all";
  EXPECT_LE(times->at(1).median, times->at(1).p95);
}

TEST(StepFactsOfAHostileFile, NonsenseInTheTablesDoesNotCrash) {
  const TemporaryFolder folder;
  const auto file = folder / "run.stepscope";
  testing::recordSample(file, {1, 6});
  {
    const Connection connection = Connection::open(file.string(), Connection::Mode::kWrite).value();
    ASSERT_TRUE(connection.execute(
        "UPDATE batch_inputs SET shape = '[1, \"x\"]', count = -5; UPDATE batch_densities SET valid = -1, total = 'many';"
        "UPDATE tensor_stats SET histogram = '{', min = 'low'; UPDATE row_losses SET data = x'00'"));
  }
  const auto project = Project::openReadOnly(file).value();
  const auto batches = readBatches(project, 1, 10, 1 << 20);
  ASSERT_TRUE(batches) << batches.error().message;
  EXPECT_EQ(batches->begin()->second.front().dims_size(), 0);
  EXPECT_EQ(batches->begin()->second.front().statistics().count(), 0);
  EXPECT_EQ(readDensities(project, 1, 10)->begin()->second.front().valid(), 0);
  EXPECT_EQ(readRowLosses(project, 1, 10).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(readWatchedStatistics(project, 1, 10)->front().statistics.histogram().empty());
  EXPECT_TRUE(readRecordedStatistics(project, 1, 100).has_value());
}

}  // namespace
}  // namespace stepscope::storage
