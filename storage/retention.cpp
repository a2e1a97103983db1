#include "storage/retention.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "storage/run_name.h"
#include "storage/schema.h"

namespace stepscope::storage {
namespace {

constexpr std::int64_t kEvery[] = {16, 256};
constexpr std::int64_t kPatience = 256;  // steps between two thinnings
constexpr auto kBackupAge = std::chrono::hours(24 * 30);

}  // namespace

void SpanThinning::keep(std::string_view option) {
  std::int64_t steps = 0;
  std::from_chars(option.data(), option.data() + option.size(), steps);
  keep_ = std::clamp<std::int64_t>(steps, 0, std::int64_t{1} << 40);
  done_ = {-1, -1};
  wait_ = 0;
}

Status SpanThinning::after(const Connection& connection, std::int64_t run, std::int64_t newest) {
  if (keep_ == 0 || wait_-- > 0) return {};
  wait_ = kPatience;
  std::int64_t age = keep_;
  for (std::size_t level = 0; level < done_.size(); ++level, age *= 16) {
    const std::int64_t until = newest - age;
    done_[level] = std::min(done_[level], newest);  // a run that went back writes those steps again
    if (until <= done_[level]) continue;
    for (const char* table : {"step_spans", "device_work", "rank_spans"}) {
      SS_STORE_ASSIGN(Statement statement,
                      connection.prepare(fmt::format("DELETE FROM {} WHERE step_id IN (SELECT id FROM steps WHERE run = ? "
                                                     "AND step > ? AND step <= ? AND step % {} != 0)",
                                                     table, kEvery[level])));
      SS_STORE_TRY(statement.bind(run, done_[level], until).run());
    }
    SS_STORE_ASSIGN(Statement statement,
                    connection.prepare(fmt::format("DELETE FROM tensor_stats WHERE run = ? AND step > ? AND step <= ? AND "
                                                   "step % {} != 0 AND kind = 'watched'",
                                                   kEvery[level])));
    SS_STORE_TRY(statement.bind(run, done_[level], until).run());
    done_[level] = until;
  }
  return {};
}

Status removeRun(const Connection& connection, std::int64_t run) {
  std::string sql;
  for (const Table& table : tables()) {
    const bool ofRun =
        std::any_of(table.columns.begin(), table.columns.end(), [](const auto& c) { return c.name == "run"; });
    if (ofRun) sql += fmt::format("DELETE FROM {} WHERE run = {};", table.name, run);
  }
  return connection.execute(sql + fmt::format("DELETE FROM runs WHERE id = {};", run));
}

Status deleteRun(const Project& project, std::int64_t run) {
  SS_STORE_TRY(checkRunWritable(project, run));
  const Connection& connection = project.connection();
  Status deleted = connection.execute("BEGIN IMMEDIATE");
  if (deleted) deleted = removeRun(connection, run);
  if (deleted) deleted = connection.execute("COMMIT");
  if (!deleted) {
    (void)connection.execute("ROLLBACK");
    return deleted;
  }
  // It attaches a file of its own to write into.
  sqlite3_limit(connection.handle(), SQLITE_LIMIT_ATTACHED, 1);
  const Status compact = connection.execute("VACUUM");
  sqlite3_limit(connection.handle(), SQLITE_LIMIT_ATTACHED, 0);
  return compact;
}

void removeOldBackups(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (int version = 1; version < kSchemaVersion; ++version) {
    const fs::path backup = fmt::format("{}.v{}.bak", path, version);
    const auto written = fs::last_write_time(backup, error);
    if (!error && fs::file_time_type::clock::now() - written > kBackupAge) fs::remove(backup, error);
  }
}

}  // namespace stepscope::storage
