// The processes of a run in the project: rows come back as means, and stand in the reports.
#include "storage/rank_steps.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/recorder.h"
#include "storage/report/report.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

// Rank 1 of three computes twice as long, so that the others wait for it.
std::vector<RankStep> stepOf(std::int64_t step) {
  std::vector<RankStep> ranks;
  for (int r = 0; r < 3; ++r) {
    RankStep& made = ranks.emplace_back();
    made = {.step = step, .rank = r, .loss = 1.0 + r, .hasLoss = r != 2, .ns = 1'000'000 + step};
    made.waitNs = r == 1 ? 1'000 : 400'000;
    made.moveNs = 100'000;
    made.sentBytes = made.plannedSentBytes = 4096;
    made.stateBytes = 1 << 20;
    made.peakBytes = (2 << 20) + step;
    made.beginNs = 1'000'000'000 + step * 2'000'000 + r * 10'000;
    made.exposedNs = r == 1 ? 50'000 : 150'000;
    made.collectives = {{"gradients of 3 parameters", made.waitNs - 500, 60'000, 4000, made.beginNs + 300'000, 100'000},
                        {"clip", 500, 40'000, 96, made.beginNs + 800'000, 50'000}};
  }
  return ranks;
}

void record(const std::filesystem::path& file) {
  auto recorder = Recorder::start(Project::create(file).value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  for (std::int64_t step = 0; step < 4; ++step) recorder->ranks(stepOf(step));
  recorder->endRun(RunStatus::kFinished);
  recorder->beginRun(testing::sampleRunInfo());
  recorder->endRun(RunStatus::kFinished);
  ASSERT_TRUE(recorder->close());
}

TEST(RankSteps, AreMeansOfWhatFollowsTheFirst) {
  const TemporaryFolder folder;
  record(folder / "p.stepscope");
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  const auto report = readRanks(project, 1);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->ranks.size(), 3u);
  for (int r = 0; r < 3; ++r) {
    const RankRow& row = report->ranks[static_cast<std::size_t>(r)];
    EXPECT_EQ(row.rank, r);
    EXPECT_EQ(row.steps, 3);
    EXPECT_EQ(row.ns, 1'000'002);
    EXPECT_EQ(row.waitNs, r == 1 ? 1'000 : 400'000);
    EXPECT_EQ(row.exposedNs, r == 1 ? 50'000 : 150'000);
    EXPECT_EQ(row.sentBytes, 4096);
    EXPECT_EQ(row.peakBytes, (2 << 20) + 3);
    EXPECT_EQ(row.last, r == 1 ? 3 : 0);
  }
  ASSERT_EQ(report->collectives.size(), 2u);
  EXPECT_EQ(report->collectives[0].node, "gradients of 3 parameters");
  EXPECT_EQ(report->collectives[0].worstWaitNs, 399'500);
  EXPECT_EQ(report->collectives[0].last, 1);
  EXPECT_EQ(report->collectives[1].meanWaitNs, 500);
  EXPECT_EQ(report->collectives[1].sentBytes, 96);
  EXPECT_EQ(report->collectives[1].exposedNs, 50'000);
  const auto steps = readRankSteps(project, 1, 2, 3);
  ASSERT_TRUE(steps) << steps.error().message;
  ASSERT_EQ(steps->size(), 6u);
  EXPECT_EQ((*steps)[4].rank, 1);
  EXPECT_EQ((*steps)[4].beginNs, 1'000'000'000 + 3 * 2'000'000 + 10'000);
  ASSERT_EQ((*steps)[4].collectives.size(), 2u);
  EXPECT_EQ((*steps)[4].collectives[1].beginNs, (*steps)[4].beginNs + 800'000);
  EXPECT_TRUE(readRanks(project, 2)->ranks.empty()) << "of one process";
}

std::string textOf(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(RankSteps, StandInTheReport) {
  const TemporaryFolder folder;
  record(folder / "p.stepscope");
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  ASSERT_TRUE(writeReport(project, 1, folder / "r.html"));
  ASSERT_TRUE(writeReport(project, 1, folder / "r.json"));
  const std::string html = textOf(folder / "r.html"), json = textOf(folder / "r.json");
  for (const char* part : {"id=\"ranks\"", "3 processes", "rank 1 computes longest", "gradients of 3 parameters"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* part : {"\"came_last\": 3", "\"waited_for\": 1", "\"worst_wait_ns\": 399500"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace stepscope::storage
