#include "storage/migration.h"

#include <gtest/gtest.h>

#include <array>

#include "storage/harden.h"
#include "storage/project.h"
#include "storage/queries.h"
#include "storage/report/data.h"
#include "storage/schema.h"
#include "tests/storage/sample_run.h"

namespace stepscope::storage {
namespace {

using testing::TemporaryFolder;

// A project as a version before the column `steps.batch` would have written it, brought forward by the mechanism.
constexpr std::array<Migration, 1> kOlder = {{{kSchemaVersion - 1, "steps say which entry of the data they used", "ALTER TABLE steps ADD COLUMN batch TEXT NOT NULL DEFAULT ''"}}};

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
  const auto copy = Connection::open(file.string() + ".v" + std::to_string(kSchemaVersion - 1) + ".bak", Connection::Mode::kRead);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->integer("PRAGMA user_version").value(), kSchemaVersion - 1);
  EXPECT_EQ(copy->integer("SELECT count(*) FROM steps").value(), 5);
}

TEST(Migration, FailureLeavesTheOlderFileAsItWas) {
  const TemporaryFolder folder;
  const auto file = folder / "old.stepscope";
  makeOlder(file);
  const std::array<Migration, 1> broken = {{{kSchemaVersion - 1, "has a mistake", "ALTER TABLE steps ADD COLUMN batch TEXT; INSERT INTO nowhere VALUES (1)"}}};
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

// A file as version 1 wrote it: no roofline. A reader takes it as it is, a writer brings it forward.
TEST(Migration, FileOfVersionOneOpens) {
  const TemporaryFolder folder;
  const auto file = folder / "one.stepscope";
  testing::recordSample(file, {1, 5});
  {
    const Connection connection = Connection::open(file.string(), Connection::Mode::kWrite).value();
    ASSERT_TRUE(connection.execute("DROP TABLE roofline; DROP TABLE machine_peaks; PRAGMA user_version = 1"));
  }
  {
    const auto project = Project::openReadOnly(file);
    ASSERT_TRUE(project) << project.error().message;
    const auto data = readReportData(*project, 0);
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_TRUE(data->roofline.peaks.empty());
    EXPECT_EQ(data->steps.size(), 5u);
  }
  testing::recordSample(folder / "new.stepscope", {1, 1});
  {
    const auto project = Project::openForWriting(file);
    ASSERT_TRUE(project) << project.error().message;
  }
  const auto columns = [](const std::filesystem::path& path) {
    const Connection connection = Connection::open(path.string(), Connection::Mode::kRead).value();
    Statement rows = connection.prepare("SELECT m.name, c.name, c.type, c.\"notnull\", c.pk FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1, c.cid").value();
    std::vector<std::string> all;
    while (rows.next()) all.push_back(rows.text(0) + "." + rows.text(1) + " " + rows.text(2) + " " + rows.text(3) + " " + rows.text(4));
    return all;
  };
  EXPECT_EQ(columns(file), columns(folder / "new.stepscope")) << "a migrated file has the tables of a new one";
  EXPECT_EQ(readSteps(Project::openReadOnly(file).value(), 1)->size(), 5u);
}

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
