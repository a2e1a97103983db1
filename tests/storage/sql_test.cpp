#include "storage/sql.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <utility>

#include "storage/device_kernels.h"
#include "storage/recorder.h"
#include "storage/report/report.h"
#include "storage/schema.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

class Sql : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TemporaryFolder;
    testing::recordSample(*folder_ / "a.stepscope", {2, 8});
    project_ = new Project(Project::openReadOnly(*folder_ / "a.stepscope").value());
  }
  static void TearDownTestSuite() {
    delete project_;
    delete folder_;
  }
  static Result<SqlResult> run(const std::string& sql, const SqlLimits& limits = {}) {
    return runSql(*project_, sql, limits);
  }

  static testing::TemporaryFolder* folder_;
  static Project* project_;
};
testing::TemporaryFolder* Sql::folder_ = nullptr;
Project* Sql::project_ = nullptr;

TEST_F(Sql, AnswersWithTypedCells) {
  const auto result =
      run("SELECT step, loss, batch, NULL, data FROM steps JOIN step_spans ON step_id = id ORDER BY step LIMIT 1");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->columns, (std::vector<std::string>{"step", "loss", "batch", "NULL", "data"}));
  EXPECT_EQ(std::get<std::int64_t>(result->rows[0][0]), 0);
  EXPECT_GT(std::get<double>(result->rows[0][1]), 5);
  EXPECT_EQ(std::get<std::string>(result->rows[0][2]), "entry 0 of 60");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(result->rows[0][3]));
  EXPECT_GT(std::get<SqlBlob>(result->rows[0][4]).bytes, 0u);
}

TEST_F(Sql, UnpacksSpansAsATable) {
  const auto all = run("SELECT count(*) FROM spans");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(std::get<std::int64_t>(all->rows[0][0]), 8 * testing::samplePlan({2, 0}).instructions_size());
  const auto joined =
      run("SELECT i.op, count(*), sum(s.ns) FROM spans s JOIN steps ON steps.id = step_id JOIN instructions i ON i.plan = "
          "steps.plan AND "
          "i.position = s.instruction WHERE step = 3 GROUP BY i.op ORDER BY 3 DESC");
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(std::get<std::string>(joined->rows[0][0]), "MatMulGrad");
}

// Of a run of 100,000 steps a question about a hundred reads a hundred.
TEST_F(Sql, SpansOfSomeStepsAreReadWithoutThoseOfOthers) {
  const auto plan = run("EXPLAIN QUERY PLAN SELECT sum(spans.ns) FROM steps JOIN spans ON id = step_id WHERE step >= 6");
  ASSERT_TRUE(plan) << plan.error().message;
  std::string text;
  for (const auto& row : plan->rows) text += sqlCellText(row.back()) + '\n';
  EXPECT_TRUE(text.starts_with("SCAN steps")) << text;
  EXPECT_NE(text.find("SCAN spans VIRTUAL TABLE INDEX 1"), std::string::npos) << text;
  const auto some = run("SELECT count(*), count(DISTINCT id) FROM steps JOIN spans ON id = step_id WHERE step >= 6");
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(std::get<std::int64_t>(some->rows[0][0]), 2 * testing::samplePlan({2, 0}).instructions_size());
  EXPECT_EQ(std::get<std::int64_t>(some->rows[0][1]), 2);
}

// What a device did, its waits and overhead among it; a step without a device has no rows.
TEST_F(Sql, UnpacksWhatADeviceDidAsATable) {
  using snapshot::DeviceRecord;
  const testing::TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "p.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  const snapshot::Plan plan = testing::samplePlan({2, 0});
  recorder->plan(plan);
  for (std::int64_t number = 0; number < 3; ++number) {
    snapshot::StepRecord step = testing::sampleStep(plan, number);
    if (number > 0) {
      snapshot::DeviceWork& work = *step.mutable_device();
      work.set_rung(number == 1 ? "activity" : "counters");
      work.set_counted(number == 1 ? "" : "bytes of memory");
      work.add_kernels()->set_name("softmax");
      for (int kind = DeviceRecord::KERNEL; kind <= DeviceRecord::OVERHEAD; ++kind) {
        DeviceRecord& record = *work.add_records();
        record.set_kind(static_cast<DeviceRecord::Kind>(kind));
        const bool overhead = kind == DeviceRecord::OVERHEAD;
        record.set_instruction(overhead ? -1 : 2);
        record.set_stream(overhead || kind == DeviceRecord::HOST_WAIT ? -1 : 1);
        record.set_kernel(kind == DeviceRecord::KERNEL ? 0 : -1);
        if (kind >= DeviceRecord::STREAM_WAIT) record.set_what(overhead ? "handing over records" : "an event");
        if (!overhead) record.set_called_ns(1000 * number);
        if (kind == DeviceRecord::KERNEL && number == 2) {
          record.mutable_counters()->set_read_bytes(4096);
          record.mutable_counters()->set_written_bytes(1024);
          record.mutable_counters()->set_occupancy(0.25);
        }
        record.set_begin_ns(1000 * number + kind);
        record.set_end_ns(1000 * number + kind + 10);
      }
    }
    recorder->step(step);
  }
  recorder->endRun(RunStatus::kFinished);
  ASSERT_TRUE(recorder->close());
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  const auto text = [&](const std::string& sql) {
    const auto result = runSql(project, sql);
    if (!result) return result.error().message;
    std::string all;
    for (const auto& row : result->rows) {
      for (const SqlCell& cell : row) all += sqlCellText(cell) + ' ';
      all += '|';
    }
    return all;
  };
  EXPECT_EQ(text("SELECT count(*), count(DISTINCT step_id), sum(ns) FROM device_records"), "16 2 160 |");
  EXPECT_EQ(
      text("SELECT kind, what, instruction, stream, called_ns, d.begin_ns FROM steps JOIN device_records d ON id = step_id "
           "WHERE step = 2 AND kind IN ('kernel', 'fill', 'stream wait', 'host wait', 'overhead')"),
      "kernel softmax 2 1 2000 2000 |fill  2 1 2000 2004 |stream wait an event 2 1 2000 2005 |host wait an event 2  2000 "
      "2006 |overhead handing over records   "
      " 2007 |");
}

// The same figures by kernel, summed up over the steps; a mean is over the launches that were counted.
TEST_F(Sql, KeepsWhatHardwareCounted) {
  using snapshot::DeviceRecord;
  const testing::TemporaryFolder folder;
  auto recorder = Recorder::start(Project::create(folder / "p.stepscope").value()).value();
  recorder->beginRun(testing::sampleRunInfo());
  const snapshot::Plan plan = testing::samplePlan({2, 0});
  recorder->plan(plan);
  for (std::int64_t number = 0; number < 4; ++number) {
    snapshot::StepRecord step = testing::sampleStep(plan, number);
    snapshot::DeviceWork& work = *step.mutable_device();
    const bool counts = number == 1 || number == 3;
    work.set_rung(counts ? "counters" : "activity");
    if (counts) work.set_counted("bytes of memory");
    work.set_uncounted(number == 3 ? 1 : 0);
    work.add_kernels()->set_name("softmax");
    for (int i = 0; i <= number; ++i) {
      DeviceRecord& record = *work.add_records();
      record.set_instruction(1);
      record.set_kernel(0);
      record.set_end_ns(10);
      if (!counts || i == 3) continue;
      record.mutable_counters()->set_read_bytes(100);
      record.mutable_counters()->set_written_bytes(10);
      record.mutable_counters()->set_occupancy(number == 1 ? 0.25 : 0.5);
    }
    recorder->step(step);
  }
  recorder->endRun(RunStatus::kFinished);
  ASSERT_TRUE(recorder->close());
  const Project project = Project::openReadOnly(folder / "p.stepscope").value();
  const auto text = [&](const std::string& sql) {
    const auto result = runSql(project, sql);
    if (!result) return result.error().message;
    std::string all;
    for (const auto& row : result->rows)
      for (const SqlCell& cell : row) all += sqlCellText(cell) + ' ';
    return all;
  };
  EXPECT_EQ(text("SELECT launches, counted, read_bytes, written_bytes, tensor IS NULL FROM device_kernels"),
            "10 5 500 50 1 ");
  EXPECT_EQ(text("SELECT achieved_occupancy FROM device_kernels"), "0.4 ") << "two of 0.25 and three of 0.5";
  EXPECT_EQ(text("SELECT count(*), count(read_bytes), sum(written_bytes) FROM device_records"), "10 5 50 ");
  EXPECT_EQ(text("SELECT rung, counted, uncounted FROM device_work ORDER BY step_id DESC LIMIT 1"),
            "counters bytes of memory 1 ");
  EXPECT_EQ(text("SELECT measured_bytes FROM roofline WHERE position = 1"), "330 ") << "of the newest step with counters";
  const auto kernels = readDeviceKernels(project, 1);
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->rows.size(), 1u);
  EXPECT_EQ(kernels->counted, "bytes of memory");
  EXPECT_EQ(kernels->rows[0].achieved, 0.4);
  EXPECT_DOUBLE_EQ(kernels->rows[0].bytesPerNs().value(), 550.0 / 5 * 10 / 100);
  // The trace's kernels are tested on a run of a device: tests/golden/device_trace_test.py.
  for (const auto& [name, wanted] :
       {std::pair("r.html", "softmax"), std::pair("r.txt", "softmax"), std::pair("r.json", "\"measured_bytes\": 330"),
        std::pair("r.roofline.csv", ",330\r\n")}) {
    ASSERT_TRUE(writeReport(project, 0, folder / name)) << name;
    std::ifstream in(folder / name);
    const std::string page{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NE(page.find(wanted), std::string::npos) << name;
  }
}

TEST_F(Sql, DocumentsEveryTableAndColumn) {
  std::size_t columns = 0;
  for (const Table& table : tables()) {
    EXPECT_FALSE(table.doc.empty()) << table.name;
    for (const Column& column : table.columns) EXPECT_FALSE(column.doc.empty()) << table.name << "." << column.name;
    columns += table.columns.size() + 1;
  }
  const auto docs = run("SELECT * FROM docs");
  EXPECT_EQ(docs->rows.size(), columns);
}

TEST_F(Sql, RefusesEverythingThatWrites) {
  for (const char* sql : {"DELETE FROM steps", "UPDATE steps SET loss = 0", "INSERT INTO steps SELECT * FROM steps",
                          "DROP TABLE steps", "CREATE TABLE x (a)", "PRAGMA user_version = 5", "PRAGMA query_only = OFF",
                          "ATTACH 'x.db' AS x", "VACUUM", "VACUUM INTO '/tmp/x'", "BEGIN", "REINDEX",
                          "CREATE TEMP TABLE x (a)", "SELECT 1; DELETE FROM steps", "SELECT load_extension('x')"}) {
    const auto result = run(sql);
    ASSERT_FALSE(result) << sql;
    EXPECT_TRUE(result.error().code == ErrorCode::kInvalidArgument || result.error().code == ErrorCode::kSql)
        << sql << ": " << result.error().message;
  }
  EXPECT_EQ(std::get<std::int64_t>(run("SELECT count(*) FROM steps")->rows[0][0]), 8);
}

TEST_F(Sql, TellsAboutMistakes) {
  EXPECT_EQ(run("SELECT nonsense FROM steps").error().code, ErrorCode::kSql);
  EXPECT_EQ(run("").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(run("-- nothing").error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(run("SELECT 1; -- done"));
}

TEST_F(Sql, StopsAtTheRowLimit) {
  const auto result = run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", {.rows = 100});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->rows.size(), 100u);
  EXPECT_TRUE(result->truncated);
}

TEST_F(Sql, StopsAtTheTimeLimit) {
  const auto result = run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
                          {.time = std::chrono::milliseconds(50)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kLimitExceeded);
}

TEST_F(Sql, CanBeCancelled) {
  std::atomic<bool> cancel = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cancel = true;
  });
  const auto result = runSql(
      *project_, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", {}, &cancel);
  other.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(run("SELECT 1")) << "the next query works";
}

TEST_F(Sql, BoundsHugeValues) {
  EXPECT_FALSE(run("SELECT zeroblob(1000000000)"));
  const auto result =
      run("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(zeroblob(1000000)) FROM n",
          {.bytes = 10'000'000});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->truncated);
  EXPECT_LT(result->rows.size(), 10u);
}

}  // namespace
}  // namespace stepscope::storage
