// Files that are damaged or not ours: a typed error or a sound answer, never a crash.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <random>

#include "storage/report/report.h"
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
  EXPECT_NE(Project::openReadOnly(file_).error().message.find("the file is empty"), std::string::npos);
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

TEST_F(Damaged, TruncatedByAPageOrMoreIsAnError) {
  const std::string bytes = readBytes(file_);
  for (std::size_t keep = 0; keep + 4096 < bytes.size(); keep += bytes.size() / 40) {
    writeBytes(file_, bytes.substr(0, keep));
    const auto project = Project::openReadOnly(file_);
    EXPECT_FALSE(project) << "kept " << keep << " of " << bytes.size();
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
        "UPDATE instructions SET flops = 'a lot', bytes_read = -1", "DELETE FROM instructions", "DELETE FROM plans",
        "DELETE FROM steps", "DELETE FROM runs"}) {
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
