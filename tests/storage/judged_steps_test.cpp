#include "storage/judged_steps.h"

#include <gtest/gtest.h>

#include "storage/comparison.h"
#include "storage/report/data.h"
#include "storage/report/html_writer.h"
#include "storage/report/run_document.h"
#include "storage/sql.h"
#include "storage/timing.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

constexpr std::int64_t kStep = 10'000'000, kCpu = 18'000'000, kWaiting = 60'000'000'000;

class JudgedSteps : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_ / "run.stepscope"; }

  void begin() {
    recorder_ = Recorder::start(Project::openForWriting(path()).value()).value();
    recorder_->beginRun(testing::sampleRunInfo());
    recorder_->graph(testing::sampleGraph({1, 0}));
    plan_ = testing::samplePlan({1, 0});
    recorder_->plan(plan_);
  }
  void run(std::int64_t number, bool stopped = false, bool walked = false, bool watched = false) {
    auto step = testing::sampleStep(plan_, number);
    step.set_cpu_ns(kCpu);
    step.set_wait_ns(wait_);
    step.set_every_value(watched);
    step.set_ns(stopped ? kWaiting : kStep);
    recorder_->step(step, walked);
    if (!stopped) return;
    snapshot::Alert alert;
    alert.set_code("stopped");
    alert.set_step(number);
    recorder_->alert(alert);
  }
  Project end() {
    recorder_->endRun(RunStatus::kFinished);
    EXPECT_TRUE(recorder_->close());
    return Project::openReadOnly(path()).value();
  }
  // What everybody who judges times of the newest run goes by.
  static void expectJudged(const Project& project, std::int64_t count) {
    const std::int64_t run = newestRun(project).value();
    EXPECT_EQ(readTiming(project, run)->step.n, count);
    EXPECT_EQ(readReportData(project, run)->timing.step.n, count);
    EXPECT_EQ(compareRuns(project, run, project, run, {})->stepA.n, count);
    const auto times = readStepTimes(project).value();
    EXPECT_EQ(times.contains(run) ? times.at(run).n : 0, count);
    const auto sql =
        runSql(project, "SELECT count(*), coalesce(max(ns), 0) FROM judged_steps WHERE run = " + std::to_string(run));
    ASSERT_TRUE(sql) << sql.error().message;
    EXPECT_EQ(std::get<std::int64_t>(sql->rows[0][0]), count);
    EXPECT_LE(std::get<std::int64_t>(sql->rows[0][1]), kStep) << "waiting is not among it";
  }

  testing::TemporaryFolder folder_;
  snapshot::Plan plan_;
  std::int64_t wait_ = 0;
  std::unique_ptr<Recorder> recorder_;
};

TEST_F(JudgedSteps, AreNeitherWarmUpNorStoppedIn) {
  begin();
  for (int i = 0; i < 6; ++i) run(i, i == 2 || i == 4);
  const Project project = end();
  expectJudged(project, 3);
  EXPECT_EQ(readTiming(project, 1)->steps, 5) << "what instructions took in a step that was stopped in counts";
}

TEST_F(JudgedSteps, AStepThatRanAgainWithoutAStopIsOneOfThem) {
  begin();
  run(0);
  run(1, true);
  run(1);
  const Project project = end();
  expectJudged(project, 1);
  EXPECT_EQ(std::get<std::int64_t>(runSql(project, "SELECT sum(stopped_in) FROM steps")->rows[0][0]), 1);
}

TEST_F(JudgedSteps, WarmUpIsAllThatARunOfOneStepHas) {
  begin();
  run(0);
  expectJudged(end(), 1);
  begin();
  run(0);
  run(1, true);
  expectJudged(end(), 0);
}

// Run with *Break on* looks at every value, which a small model feels: its times are not those of a recorded run.
TEST_F(JudgedSteps, SayWhereEveryValueWasLookedAt) {
  for (const bool looked : {true, false}) {
    begin();
    for (int i = 0; i < 3; ++i) run(i, false, false, looked);
    expectJudged(end(), 2);
  }
  const Project project = Project::openReadOnly(path()).value();
  EXPECT_EQ(readTiming(project, 1)->kind.speed(), "watched");
  const auto compared = compareRuns(project, 1, 2);
  EXPECT_EQ(unlikeSpeeds(compared->kindA, compared->kindB), "A watched, B recorded");
}

// Instruction by instruction is slower: such steps count only where a run has no others.
TEST_F(JudgedSteps, AreNotWalkedWhileOthersRan) {
  begin();
  for (int i = 0; i < 6; ++i) run(i, false, i == 2 || i == 4);
  const Project project = end();
  expectJudged(project, 3);
  EXPECT_EQ(readTiming(project, 1)->kind.speed(), "recorded");
  begin();
  for (int i = 0; i < 4; ++i) run(i, false, i > 0);
  const Project again = end();
  expectJudged(again, 3);
  EXPECT_EQ(readTiming(again, 2)->kind.speed(), "walked");
  const auto compared = compareRuns(again, 1, 2);
  EXPECT_EQ(unlikeSpeeds(compared->kindA, compared->kindB), "A recorded, B walked");
  EXPECT_EQ(unlikeSpeeds(compared->kindA, compared->kindA), "");
  StepKind mixed = compared->kindA;
  mixed.add(1, 0, 0, kFullSpeed);
  EXPECT_EQ(unlikeSpeeds(mixed, mixed), "A 1 full speed, 3 recorded, B 1 full speed, 3 recorded");
}

// A machine that does other things makes times longer: report and comparison say so.
TEST_F(JudgedSteps, SayThatTheMachineWasBusy) {
  begin();
  for (int i = 0; i < 3; ++i) run(i);
  (void)end();
  begin();
  wait_ = kCpu / 2;
  for (int i = 0; i < 3; ++i) run(i);
  const Project project = end();
  const auto compared = compareRuns(project, 1, 2);
  EXPECT_FALSE(compared->kindA.busy());
  EXPECT_TRUE(compared->kindB.busy());
  EXPECT_DOUBLE_EQ(compared->kindB.waitShare(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(compared->kindB.processors(), 1.8);
  EXPECT_TRUE(readStepTimes(project)->at(2).kind.busy());
  for (const int which : {1, 2}) {
    const std::string html = htmlOf(runDocument(readReportData(project, which).value()));
    EXPECT_EQ(html.find("The machine was busy: 33 %") != std::string::npos, which == 2);
    EXPECT_NE(html.find("waited"), std::string::npos);
  }
}

TEST_F(JudgedSteps, AWriterSeesThemToo) {
  begin();
  run(0);
  run(1);
  (void)end();
  const Project project = Project::openForWriting(path()).value();
  EXPECT_EQ(readSteps(project, 1)->at(1).judged, true);
  EXPECT_EQ(readSteps(project, 1)->at(0).judged, false);
}

TEST_F(JudgedSteps, ADocumentedTableHasTheirColumns) {
  begin();
  run(0);
  const Project project = end();
  const Table table = judgedStepsTable();
  EXPECT_FALSE(table.doc.empty());
  std::string columns;
  for (const Column& column : table.columns) columns += (columns.empty() ? "" : ", ") + std::string(column.name);
  const auto sql = runSql(project, "SELECT " + columns + " FROM judged_steps");
  ASSERT_TRUE(sql) << sql.error().message;
  EXPECT_EQ(sql->columns, runSql(project, "SELECT * FROM judged_steps")->columns);
}

// The view is the only thing a reader's connection ever made.
TEST_F(JudgedSteps, AReaderWritesNothingElse) {
  begin();
  run(0);
  const Project project = end();
  EXPECT_FALSE(project.connection().execute("DELETE FROM steps"));
  EXPECT_FALSE(project.connection().execute("CREATE TEMP TABLE t (a)"));
}

}  // namespace
}  // namespace stepscope::storage
