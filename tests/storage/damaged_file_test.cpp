// Files that are damaged or not ours: a typed error or a sound answer, never a crash.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <random>

#include "storage/report/report.h"
#include "storage/salvage.h"
#include "storage/schema.h"
#include "storage/sql.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

std::string readBytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void writeBytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// As any program with SQLite could.
void change(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

class Damaged : public ::testing::Test {
 protected:
  void SetUp() override { testing::recordSample(file_, {1, 6}); }

  void expect(ErrorCode code) const {
    const auto reader = Project::openReadOnly(file_);
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, code) << reader.error().message;
    const auto writer = Project::openForWriting(file_);
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().code, code) << writer.error().message;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "a.stepscope";
};

TEST_F(Damaged, TextIsNotAProject) {
  writeBytes(file_, std::string(5000, 'x'));
  expect(ErrorCode::kForeign);
}

TEST_F(Damaged, EmptyFileIsNotAProjectToRead) {
  writeBytes(file_, "");
  EXPECT_EQ(Project::openReadOnly(file_).error().code, ErrorCode::kForeign);
  EXPECT_NE(Project::openReadOnly(file_).error().message.find("nothing was recorded in it"), std::string::npos);
}

TEST_F(Damaged, DatabaseOfAnotherProgramIsForeign) {
  change(file_, "PRAGMA application_id = 1234");
  expect(ErrorCode::kForeign);
}

TEST_F(Damaged, NewerVersionThatWeMayNotReadIsRefused) {
  change(file_, "UPDATE meta SET value = 99 WHERE key = 'last_compatible_version'; PRAGMA user_version = 99");
  expect(ErrorCode::kNewer);
}

TEST_F(Damaged, NewerVersionThatWeMayReadIsReadOnly) {
  change(file_, fmt::format("PRAGMA user_version = {}", kSchemaVersion + 1));
  const auto reader = Project::openReadOnly(file_);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_FALSE(reader->warnings().empty());
  EXPECT_EQ(Project::openForWriting(file_).error().code, ErrorCode::kNewer);
}

TEST_F(Damaged, TriggerIsRefused) {
  change(file_, "CREATE TRIGGER evil AFTER INSERT ON steps BEGIN DELETE FROM runs; END");
  expect(ErrorCode::kCorrupt);
}

TEST_F(Damaged, ViewIsRefused) {
  change(file_, "CREATE VIEW evil AS SELECT * FROM runs");
  expect(ErrorCode::kCorrupt);
}

TEST_F(Damaged, MissingColumnIsRefused) {
  change(file_, "ALTER TABLE steps DROP COLUMN batch");
  expect(ErrorCode::kCorrupt);
}

TEST_F(Damaged, TruncatedByAPageOrMoreIsAnErrorOrReadAsFarAsItGoes) {
  const std::string bytes = readBytes(file_);
  for (std::size_t keep = 0; keep + 4096 < bytes.size(); keep += bytes.size() / 40) {
    writeBytes(file_, bytes.substr(0, keep));
    const auto project = Project::openReadOnly(file_);
    EXPECT_TRUE(!project || !project->warnings().empty()) << "kept " << keep << " of " << bytes.size();
    EXPECT_TRUE(keep == 0 || !Project::openForWriting(file_)) << "kept " << keep;
  }
}

// Of a file that has a page of zeros, or that lacks its end, everything else is read, and what is missing is named.
class DamagedPages : public Damaged {
 protected:
  void SetUp() override { testing::recordSample(file_, {1, 2000}); }

  // The page that holds the row of `sql`, found by its text: each step's row is on a leaf of the table.
  void zeroPageInTheMiddle() {
    std::string bytes = readBytes(file_);
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open_v2(file_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    sqlite3_stmt* row = nullptr;
    ASSERT_EQ(
        sqlite3_prepare_v2(db,
                           "SELECT pageno FROM dbstat WHERE name = 'steps' AND pagetype = 'leaf' ORDER BY path "
                           "LIMIT 1 OFFSET (SELECT count(*) / 2 FROM dbstat WHERE name = 'steps' AND pagetype = 'leaf')",
                           -1, &row, nullptr),
        SQLITE_OK)
        << sqlite3_errmsg(db);
    ASSERT_EQ(sqlite3_step(row), SQLITE_ROW);
    const auto page = static_cast<std::size_t>(sqlite3_column_int64(row, 0));
    sqlite3_finalize(row);
    sqlite3_close(db);
    for (std::size_t i = (page - 1) * 4096; i < page * 4096; ++i) bytes[i] = 0;
    writeBytes(file_, bytes);
  }

  static std::int64_t count(const Project& project, const std::string& sql) {
    return std::stoll(sqlCellText(runSql(project, sql)->rows.at(0).at(0)));
  }
};

TEST_F(DamagedPages, PageOfZerosCostsItsRowsAlone) {
  zeroPageInTheMiddle();
  EXPECT_EQ(Project::openForWriting(file_).error().code, ErrorCode::kCorrupt);
  const auto project = Project::openReadOnly(file_);
  ASSERT_TRUE(project) << project.error().message;
  const std::int64_t steps = count(*project, "SELECT count(*) FROM steps");
  EXPECT_LT(steps, 2000);
  EXPECT_GT(steps, 1900);
  EXPECT_EQ(count(*project, "SELECT max(step) FROM steps"), 1999);
  EXPECT_EQ(count(*project, "SELECT count(*) FROM step_spans"), 2000) << "a table that is whole is read wholly";
  ASSERT_EQ(project->warnings().size(), 2u);
  EXPECT_NE(project->warnings()[0].find("stepscope recover"), std::string::npos) << project->warnings()[0];
  EXPECT_NE(project->warnings()[1].find("table steps"), std::string::npos) << project->warnings()[1];
  EXPECT_TRUE(writeReport(*project, 0, folder_ / "r.html"));
}

TEST_F(DamagedPages, RecoverWritesAProjectThatCanBeWrittenAgain) {
  zeroPageInTheMiddle();
  const auto result = recoverProject(file_, folder_ / "new.stepscope");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->complete());
  ASSERT_EQ(result->missing().size(), 1u);
  EXPECT_EQ(recoverProject(file_, folder_ / "new.stepscope").error().code, ErrorCode::kExists);
  EXPECT_TRUE(Project::openForWriting(folder_ / "new.stepscope"));
  const auto project = Project::openReadOnly(folder_ / "new.stepscope");
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_TRUE(project->warnings().empty());
  const std::int64_t steps = count(*project, "SELECT count(*) FROM steps");
  EXPECT_EQ(steps + count(*project, "SELECT amount FROM lost WHERE what = 'steps' AND run = 1"), 2000);
  EXPECT_EQ(count(*project, "SELECT count(*) FROM spans"), steps * count(*project, "SELECT count(*) FROM instructions"));
}

TEST_F(DamagedPages, FileWithoutItsEndIsRead) {
  const std::string bytes = readBytes(file_);
  writeBytes(file_, bytes.substr(0, bytes.size() / 4096 * 3 / 4 * 4096));
  const auto project = Project::openReadOnly(file_);
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_GT(count(*project, "SELECT count(*) FROM steps"), 500);
  EXPECT_FALSE(project->warnings().empty());
}

TEST_F(DamagedPages, WholeFileIsRecoveredWhole) {
  const auto result = recoverProject(file_, folder_ / "new.stepscope");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->complete());
  const auto before = Project::openReadOnly(file_), after = Project::openReadOnly(folder_ / "new.stepscope");
  for (const Table& table : tables()) {
    const std::string sql = fmt::format("SELECT count(*) FROM {}", table.name);
    EXPECT_EQ(count(*before, sql), count(*after, sql)) << table.name;
  }
}

TEST_F(Damaged, RandomBytesNeverCrashAReaderOrAReport) {
  const std::string bytes = readBytes(file_);
  std::mt19937_64 random(42);
  int opened = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    const int changes = 1 << (round % 8);
    for (int i = 0; i < changes; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    writeBytes(file_, damaged);
    const auto project = Project::openReadOnly(file_);
    if (!project) continue;
    ++opened;
    for (const char* name : {"r.html", "r.json", "r.trace.json", "r.csv"}) (void)writeReport(*project, 0, folder_ / name);
    (void)runSql(*project, "SELECT count(*), sum(ns) FROM spans");
  }
  EXPECT_GT(opened, 0);
}

// Sound databases with contents that no writer of ours would produce.
TEST_F(Damaged, AbsurdContentsNeverCrashAReport) {
  for (const char* sql :
       {"UPDATE steps SET ns = 9223372036854775807, begin_ns = -9223372036854775808, samples = -1, tokens = "
        "9223372036854775807",
        "UPDATE phases SET ns = 9223372036854775807, begin_ns = 9223372036854775807, depth = -5, parent = id",
        "UPDATE runs SET started_at = 9223372036854775807, threads = -1, model_path = char(0x202e) || '<script>'",
        "UPDATE step_spans SET data = zeroblob(100)", "UPDATE plans SET data = x'00'", "UPDATE steps SET loss = 'NaN'",
        "UPDATE steps SET loss = 9e999", "UPDATE steps SET step = 9223372036854775807",
        "UPDATE passes SET nodes_before = -9223372036854775807 - 1, nodes_after = 9223372036854775807, matches = "
        "-9223372036854775807 - 1",
        "DELETE FROM graphs WHERE id < (SELECT max(id) FROM graphs); UPDATE graphs SET id = 0",
        "UPDATE lost SET amount = 9223372036854775807", "UPDATE instructions SET flops = 'a lot', bytes_read = -1",
        "DELETE FROM instructions", "DELETE FROM plans", "DELETE FROM steps", "DELETE FROM runs"}) {
    change(file_, sql);
    const auto project = Project::openReadOnly(file_);
    ASSERT_TRUE(project) << project.error().message;
    for (const char* name :
         {"r.html", "r.json", "r.trace.json", "r.csv", "r.ops.csv", "r.phases.csv", "r.instructions.csv"}) {
      const Status status = writeReport(*project, 0, folder_ / name);
      EXPECT_TRUE(status || !status.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace stepscope::storage
