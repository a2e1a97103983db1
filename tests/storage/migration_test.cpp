#include "storage/migration.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "storage/harden.h"
#include "storage/ledger.h"
#include "storage/project.h"
#include "storage/pytorch/join.h"
#include "storage/queries.h"
#include "storage/rank_steps.h"
#include "storage/report/data.h"
#include "storage/schema.h"
#include "storage/step_facts.h"
#include "storage/trials.h"
#include "storage/verdicts.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

// A project as a version before the column `steps.batch` would have written it, brought forward by the mechanism.
constexpr std::array<Migration, 1> kOlder = {{{kSchemaVersion - 1, "steps say which entry of the data they used",
                                               "ALTER TABLE steps ADD COLUMN batch TEXT NOT NULL DEFAULT ''"}}};

void makeOlder(const std::filesystem::path& path) {
  testing::recordSample(path, {1, 5});
  const Connection connection = Connection::open(path.string(), Connection::Mode::kWrite).value();
  ASSERT_TRUE(connection.execute("ALTER TABLE steps DROP COLUMN batch"));
  ASSERT_TRUE(connection.execute("PRAGMA user_version = " + std::to_string(kSchemaVersion - 1)));
}

TEST(Migration, BringsAnOlderFileForwardAndKeepsItsData) {
  const TemporaryFolder folder;
  const auto file = folder / "old.stepscope";
  makeOlder(file);
  {
    const Connection connection = Connection::open(file.string(), Connection::Mode::kWrite).value();
    const Status status = migrate(connection, file.string(), kOlder, kSchemaVersion);
    ASSERT_TRUE(status) << status.error().message;
    ASSERT_TRUE(checkSchema(connection, file.string(), false));
  }
  const auto project = Project::openReadOnly(file);
  ASSERT_TRUE(project) << project.error().message;
  EXPECT_EQ(readSteps(*project, 1)->size(), 5u);
}

TEST(Migration, KeepsACopyOfTheOlderFile) {
  const TemporaryFolder folder;
  const auto file = folder / "old.stepscope";
  makeOlder(file);
  const Connection connection = Connection::open(file.string(), Connection::Mode::kWrite).value();
  ASSERT_TRUE(migrate(connection, file.string(), kOlder, kSchemaVersion));
  const auto copy =
      Connection::open(file.string() + ".v" + std::to_string(kSchemaVersion - 1) + ".bak", Connection::Mode::kRead);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->integer("PRAGMA user_version").value(), kSchemaVersion - 1);
  EXPECT_EQ(copy->integer("SELECT count(*) FROM steps").value(), 5);
}

TEST(Migration, FailureLeavesTheOlderFileAsItWas) {
  const TemporaryFolder folder;
  const auto file = folder / "old.stepscope";
  makeOlder(file);
  const std::array<Migration, 1> broken = {
      {{kSchemaVersion - 1, "has a mistake", "ALTER TABLE steps ADD COLUMN batch TEXT; INSERT INTO nowhere VALUES (1)"}}};
  const Connection connection = Connection::open(file.string(), Connection::Mode::kWrite).value();
  EXPECT_FALSE(migrate(connection, file.string(), broken, kSchemaVersion));
  EXPECT_EQ(connection.integer("PRAGMA user_version").value(), kSchemaVersion - 1);
  EXPECT_EQ(connection.integer("SELECT count(*) FROM pragma_table_info('steps') WHERE name = 'batch'").value(), 0);
}

TEST(Migration, MissingStepIsAnError) {
  const TemporaryFolder folder;
  const auto file = folder / "old.stepscope";
  makeOlder(file);
  const Connection connection = Connection::open(file.string(), Connection::Mode::kWrite).value();
  EXPECT_EQ(migrate(connection, file.string(), {}, kSchemaVersion).error().code, ErrorCode::kCorrupt);
}

std::vector<std::string> columns(const std::filesystem::path& path) {
  const Connection connection = Connection::open(path.string(), Connection::Mode::kRead).value();
  Statement rows = connection
                       .prepare(
                           "SELECT m.name, c.name, c.type, c.\"notnull\", c.pk FROM sqlite_schema m, "
                           "pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, c.cid")
                       .value();
  std::vector<std::string> all;
  while (rows.next())
    all.push_back(rows.text(0) + "." + rows.text(1) + " " + rows.text(2) + " " + rows.text(3) + " " + rows.text(4));
  return all;
}

// A file as an older version wrote it.
void makeVersion(const std::filesystem::path& path, int version) {
  testing::recordSample(path, {1, 5});
  const Connection connection = Connection::open(path.string(), Connection::Mode::kWrite).value();
  ASSERT_TRUE(connection.execute(
      "DROP TABLE ledger_sessions; ALTER TABLE machine_peaks DROP COLUMN waiting; PRAGMA user_version = 16"));
  if (version < 16) {
    ASSERT_TRUE(connection.execute("DROP TABLE rewinds; PRAGMA user_version = 15"));
  }
  if (version < 15) {
    ASSERT_TRUE(connection.execute(
        "ALTER TABLE device_work DROP COLUMN counted; ALTER TABLE device_work DROP COLUMN uncounted; ALTER TABLE "
        "device_kernels DROP COLUMN counted; ALTER TABLE device_kernels DROP COLUMN read_bytes; ALTER TABLE device_kernels "
        "DROP COLUMN written_bytes; ALTER TABLE device_kernels DROP COLUMN achieved_occupancy; ALTER TABLE device_kernels "
        "DROP COLUMN tensor; ALTER TABLE roofline DROP COLUMN measured_bytes; PRAGMA user_version = 14"));
  }
  if (version < 14) {
    ASSERT_TRUE(connection.execute("DROP TABLE rank_spans; PRAGMA user_version = 13"));
  }
  if (version >= 13) {
    ASSERT_TRUE(connection.execute(
        "INSERT INTO rank_steps VALUES (1, 1, 0, 0.5, 1000, 200, 100, 8, 8, 8, 64, 64, 32, 5000, 300); INSERT INTO "
        "rank_collectives VALUES (1, 1, 0, 0, 'x', 200, 100, 8, 5100, 300)"));
  } else {
    ASSERT_TRUE(connection.execute(
        "ALTER TABLE rank_steps DROP COLUMN begin_ns; ALTER TABLE rank_steps DROP COLUMN exposed_ns; ALTER TABLE "
        "rank_collectives DROP COLUMN begin_ns; ALTER TABLE rank_collectives DROP COLUMN exposed_ns; INSERT INTO rank_steps "
        "VALUES (1, 1, 0, 0.5, 1000, 200, 100, 8, 8, 8, 64, 64, 32); INSERT INTO rank_collectives VALUES (1, 1, 0, 0, 'x', "
        "200, 100, 8); PRAGMA user_version = 12"));
  }
  if (version < 12) {
    ASSERT_TRUE(connection.execute("DROP TABLE rank_steps; DROP TABLE rank_collectives; PRAGMA user_version = 11"));
  }
  if (version < 11) {
    ASSERT_TRUE(connection.execute("DROP TABLE pytorch_imports; DROP TABLE pytorch_rows; PRAGMA user_version = 10"));
  }
  if (version < 10) {
    ASSERT_TRUE(connection.execute(
        "ALTER TABLE buffers DROP COLUMN measured_bytes; ALTER TABLE batch_densities DROP COLUMN computed; "
        "ALTER TABLE batch_densities DROP COLUMN decision; "
        "PRAGMA user_version = 9"));
  }
  if (version < 9) {
    ASSERT_TRUE(connection.execute("DROP TABLE device_work; DROP TABLE device_kernels; PRAGMA user_version = 8"));
  }
  if (version < 8) {
    ASSERT_TRUE(connection.execute("DROP TABLE ledger; DROP TABLE ledger_advice; PRAGMA user_version = 7"));
  }
  // What told of a stop before steps did.
  ASSERT_TRUE(connection.execute("INSERT INTO alerts VALUES (NULL, 1, 'info', 'stopped', 'stopped once', -1, -1, 2, 7)"));
  ASSERT_TRUE(connection.execute("UPDATE steps SET stopped_in = 1 WHERE step = 2"));
  if (version >= 7) return;
  ASSERT_TRUE(connection.execute("DROP TABLE trials; PRAGMA user_version = 6"));
  if (version == 6) return;
  ASSERT_TRUE(
      connection.execute("ALTER TABLE steps DROP COLUMN cpu_ns; ALTER TABLE "
                         "steps DROP COLUMN wait_ns; ALTER TABLE steps DROP COLUMN speed; DROP INDEX step_spans_index_0; "
                         "PRAGMA user_version = 5"));
  if (version == 5) return;
  ASSERT_TRUE(connection.execute("ALTER TABLE steps DROP COLUMN stopped_in; PRAGMA user_version = 4"));
  if (version == 4) return;
  ASSERT_TRUE(connection.execute("DROP TABLE determinism; ALTER TABLE graphs DROP COLUMN base; PRAGMA user_version = 3"));
  if (version == 3) return;
  ASSERT_TRUE(connection.execute("DELETE FROM tensor_stats WHERE kind != 'watched'"));
  ASSERT_TRUE(
      connection.execute("DROP TABLE batch_densities; DROP TABLE batch_inputs; DROP TABLE row_losses; ALTER TABLE steps "
                         "DROP COLUMN recording_ns;"
                         "ALTER TABLE tensor_stats DROP COLUMN kind; ALTER TABLE tensor_stats DROP COLUMN subject; ALTER "
                         "TABLE tensor_stats DROP COLUMN node;"
                         "PRAGMA user_version = 2"));
  if (version == 1) {
    ASSERT_TRUE(connection.execute("DROP TABLE roofline; DROP TABLE machine_peaks; PRAGMA user_version = 1"));
  }
}

// Numbers of the steps that say how fast a step is.
std::vector<std::int64_t> judged(const Project& project) {
  std::vector<std::int64_t> numbers;
  const auto steps = readSteps(project, 1);
  for (const StepRow& step : *steps)
    if (step.judged) numbers.push_back(step.step);
  return numbers;
}

// A reader takes it as it is, a writer brings it forward.
class MigrationFrom : public ::testing::TestWithParam<int> {};

TEST_P(MigrationFrom, FileOpensForReadingAndForWriting) {
  const TemporaryFolder folder;
  const auto file = folder / "old.stepscope";
  makeVersion(file, GetParam());
  {
    const auto project = Project::openReadOnly(file);
    ASSERT_TRUE(project) << project.error().message;
    const auto data = readReportData(*project, 0);
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(data->roofline.peaks.empty(), GetParam() == 1);
    EXPECT_EQ(data->steps.size(), 5u);
    EXPECT_EQ(readDensities(*project, 1, 10)->empty(), GetParam() < 3);
    EXPECT_EQ(readBatches(*project, 1, 10, 1 << 20)->empty(), GetParam() < 3);
    EXPECT_EQ(readRowLosses(*project, 1, 10)->empty(), GetParam() < 3);
    EXPECT_EQ(readRecordedStatistics(*project, 1, 1000)->empty(), GetParam() < 3);
    EXPECT_EQ(readGraph(*project, 1)->phase(), "optimizer");
    EXPECT_TRUE(readDeterminism(*project, 1)->empty());
    EXPECT_TRUE(readTrials(*project, 1)->empty());
    EXPECT_TRUE(readLedger(*project, 1)->lines.empty());
    EXPECT_TRUE(readJoins(*project, 1)->empty());
    EXPECT_EQ(readRanks(*project, 1)->ranks.empty(), GetParam() < 12);
    if (GetParam() == 12) {
      EXPECT_EQ(readRanks(*project, 1)->ranks[0].exposedNs, 300) << "all was, before 13";
    }
    EXPECT_EQ(readRankSteps(*project, 1, 0, 10)->empty(), GetParam() < 13) << "when ranks did what is not known";
    const auto ranks = readRanksOf(*project, 2);
    ASSERT_TRUE(ranks) << ranks.error().message;
    ASSERT_EQ(ranks->ranks_size(), GetParam() < 12 ? 0 : 1);
    if (GetParam() >= 12) {
      EXPECT_EQ(ranks->step(), 1);
      const snapshot::RankStep& rank = ranks->ranks(0);
      EXPECT_EQ(rank.exposed_ns(), 300);
      EXPECT_EQ(rank.begin_ns(), GetParam() == 12 ? 0 : 5000);
      EXPECT_EQ(rank.planned_bytes(), 64);
      ASSERT_EQ(rank.collectives_size(), 1);
      EXPECT_EQ(rank.collectives(0).exposed_ns(), 300);
      EXPECT_EQ(rank.spans_size(), 0);
    }
    EXPECT_EQ(judged(*project), (std::vector<std::int64_t>{1, 3, 4}));
    EXPECT_EQ(data->timing.kind.speed(), "recorded") << "told by the spans";
    EXPECT_EQ(readWatchedStatistics(*project, 1, 10)->size(), 1u) << "statistics of watched values are older than that";
  }
  testing::recordSample(folder / "new.stepscope", {1, 1});
  {
    const auto project = Project::openForWriting(file);
    ASSERT_TRUE(project) << project.error().message;
  }
  EXPECT_EQ(columns(file), columns(folder / "new.stepscope")) << "a migrated file has the tables of a new one";
  const auto project = Project::openReadOnly(file);
  EXPECT_EQ(readSteps(*project, 1)->size(), 5u);
  EXPECT_EQ(readWatchedStatistics(*project, 1, 10)->size(), 1u);
  std::set<std::string> kinds;
  const auto recorded = readRecordedStatistics(*project, 1, 1000);
  ASSERT_TRUE(recorded) << recorded.error().message;
  for (const auto& [step, values] : *recorded)
    for (const auto& value : values) kinds.insert(value.kind());
  EXPECT_TRUE(kinds.erase("watched"));
  EXPECT_EQ(kinds.empty(), GetParam() < 3);
  EXPECT_EQ(readGraph(*project, 1)->phase(), "optimizer") << "a graph of before stands alone";
  EXPECT_TRUE(readDeterminism(*project, 1)->empty());
  EXPECT_EQ(judged(*project), (std::vector<std::int64_t>{1, 3, 4}));
  EXPECT_EQ(readTiming(*project, 1)->kind.speed(), "recorded");
  if (GetParam() == 12) {
    EXPECT_EQ(readRanks(*project, 1)->collectives[0].exposedNs, 300);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, MigrationFrom, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));

// Every version from 1 has a migration on its way to the present one.
TEST(Migration, ListIsComplete) {
  int version = 1;
  for (const Migration& step : migrations()) {
    EXPECT_EQ(step.from, version);
    EXPECT_FALSE(step.doc.empty());
    ++version;
  }
  EXPECT_EQ(version, kSchemaVersion);
}

}  // namespace
}  // namespace stepscope::storage
