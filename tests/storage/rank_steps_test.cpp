// The processes of a run in the project: rows come back as means, and stand in the reports.
#include "storage/rank_steps.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "storage/recorder.h"
#include "storage/report/report.h"
#include "storage/span_codec.h"
#include "storage/sql.h"
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

// A step of two ranks, of which rank 1 began a little later and has `spans` of its own.
void recordStep(Recorder& recorder, std::int64_t step, int spans) {
  snapshot::StepRecord record;
  record.set_step(step);
  record.set_begin_ns(5'000'000 + step * 1'000'000);
  record.set_ns(900'000);
  snapshot::StepRecord theirs;  // on a clock that began elsewhere
  theirs.set_begin_ns(70'000'000'000 + step * 1'000'000);
  for (int i = 0; i < spans; ++i) {
    for (snapshot::StepRecord* of : {&record, &theirs}) {
      snapshot::InstructionSpan& span = *of->add_spans();
      span.set_instruction(i);
      span.set_node(10 + i);
      span.set_begin_ns(of->begin_ns() + i * 1000);
      span.set_end_ns(span.begin_ns() + 600 + (of == &theirs ? 50 : 0));
    }
  }
  std::vector<RankStep> ranks(2);
  for (int r = 0; r < 2; ++r) {
    ranks[static_cast<std::size_t>(r)] = {.step = step, .rank = r, .loss = 0.5, .hasLoss = r == 0, .ns = 900'000};
    ranks[static_cast<std::size_t>(r)].beginNs = record.begin_ns() + r * 7'000;
    ranks[static_cast<std::size_t>(r)].peakBytes = 100 + r;
    ranks[static_cast<std::size_t>(r)].plannedBytes = 90 + r;
    ranks[static_cast<std::size_t>(r)].collectives = {{"gradients", 2'000, 300, 64, record.begin_ns() + 9'000, 2'300}};
  }
  ranks[1].spans = encodeSpans(theirs);
  ranks[1].spanCount = spans;
  recorder.step(record);
  recorder.ranks(std::move(ranks));
}

TEST(RankSteps, BringTheTimesOfEachRankOnOneClock) {
  const TemporaryFolder folder;
  {
    auto recorder = Recorder::start(Project::create(folder / "p.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    for (std::int64_t step = 0; step < 3; ++step) recordStep(*recorder, step, step == 2 ? 0 : 4);
    ASSERT_TRUE(recorder->close());
  }
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  const auto read = readRanksOf(project, 2);
  ASSERT_TRUE(read) << read.error().message;
  const snapshot::StepRanks& record = *read;
  EXPECT_EQ(record.step(), 1);
  ASSERT_EQ(record.ranks_size(), 2);
  EXPECT_EQ(record.ranks(0).spans_size(), 0) << "they are those of the step";
  EXPECT_TRUE(record.ranks(0).has_loss());
  EXPECT_FALSE(record.ranks(1).has_loss());
  EXPECT_EQ(record.ranks(1).peak_bytes(), 101);
  EXPECT_EQ(record.ranks(1).planned_bytes(), 91);
  ASSERT_EQ(record.ranks(1).collectives_size(), 1);
  EXPECT_EQ(record.ranks(1).collectives(0).wait_ns(), 2'000);
  ASSERT_EQ(record.ranks(1).spans_size(), 4);
  const snapshot::InstructionSpan& span = record.ranks(1).spans(2);
  EXPECT_EQ(span.instruction(), 2);
  EXPECT_EQ(span.node(), 12);
  EXPECT_EQ(span.begin_ns(), 6'000'000 + 7'000 + 2'000) << "as long behind its step's begin, on the clock of rank 0";
  EXPECT_EQ(span.end_ns() - span.begin_ns(), 650);
  using Row = std::vector<std::int64_t>;
  const auto rowsOf = [&](const char* sql) {
    std::vector<Row> rows;
    const auto answer = runSql(project, sql);
    EXPECT_TRUE(answer) << answer.error().message;
    if (!answer) return rows;
    for (const auto& cells : answer->rows) {
      Row& row = rows.emplace_back();
      for (const SqlCell& cell : cells) row.push_back(std::get<std::int64_t>(cell));
    }
    return rows;
  };
  EXPECT_EQ(rowsOf("SELECT rank, count(*), min(begin_ns), max(instruction), max(node), max(ns), max(thread) FROM "
                   "spans_of_ranks WHERE step_id = 2 GROUP BY rank ORDER BY rank"),
            (std::vector<Row>{{0, 4, 6'000'000, 3, 13, 600, 0}, {1, 4, 6'007'000, 3, 13, 650, 0}}));
  EXPECT_EQ(rowsOf("SELECT count(*), (SELECT count(*) FROM spans) FROM spans_of_ranks"), (std::vector<Row>{{16, 8}}));
  ASSERT_TRUE(writeReport(project, 1, folder / "r.trace.json"));
  std::ifstream file(folder / "r.trace.json");
  const auto trace = nlohmann::json::parse(file);
  std::vector<double> begins;
  for (const auto& event : trace["traceEvents"])
    if (event.value("cat", "") == "cpu_op" && event["args"].value("rank", 0) == 1 && event["args"]["step"] == 1)
      begins.push_back(event["ts"].get<double>() + trace["baseTimeNanoseconds"].get<double>() / 1000);
  EXPECT_EQ(begins, (std::vector<double>{6007, 6008, 6009, 6010}));
  const auto without = readRanksOf(project, 3);
  ASSERT_TRUE(without);
  EXPECT_EQ(without->ranks(1).spans_size(), 0);
  EXPECT_EQ(without->ranks(1).collectives_size(), 1);
}

// Times of instructions are most of a project: those of other ranks go as those of rank 0 do.
TEST(RankSteps, LoseTheTimesOfOldInstructionsWithThoseOfTheStep) {
  const TemporaryFolder folder;
  {
    auto recorder = Recorder::start(Project::create(folder / "p.stepscope").value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    snapshot::Option keep;
    keep.set_name("record.keep");
    keep.set_value("8");
    recorder->options({keep});
    for (std::int64_t step = 0; step < 600; ++step) recordStep(*recorder, step, 2);
    ASSERT_TRUE(recorder->close());
  }
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  const auto count = [&](const char* sql) { return project.connection().integer(sql).value(); };
  EXPECT_LT(count("SELECT count(*) FROM rank_spans"), 400);
  EXPECT_EQ(count("SELECT count(*) FROM rank_spans"), count("SELECT count(*) FROM step_spans"));
  EXPECT_EQ(count("SELECT count(*) FROM rank_steps"), 1200);
}

// Contents of a file are another's word.
TEST(RankSteps, DamagedTimesAreAnError) {
  const TemporaryFolder folder;
  const auto file = folder / "p.stepscope";
  {
    auto recorder = Recorder::start(Project::create(file).value()).value();
    recorder->beginRun(testing::sampleRunInfo());
    recordStep(*recorder, 0, 4);
    ASSERT_TRUE(recorder->close());
  }
  {
    const Connection connection = Connection::open(file.string(), Connection::Mode::kWrite).value();
    ASSERT_TRUE(connection.execute("UPDATE rank_spans SET data = zeroblob(40)"));
  }
  const Project project = Project::openReadOnly(file).value();
  const auto read = readRanksOf(project, 1);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << read.error().message;
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
