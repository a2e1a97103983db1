#include "storage/harden.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <set>

#include "storage/checked_files.h"
#include "storage/schema.h"

namespace stepscope::storage {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kRecoverHint = "; hint: 'stepscope recover PROJECT -o NEW' saves what can be read";

struct Until {
  Clock::time_point deadline;
  const std::atomic<bool>* stop = nullptr;
};

int isOver(void* data) {
  const auto* until = static_cast<const Until*>(data);
  return Clock::now() > until->deadline || (until->stop && until->stop->load(std::memory_order_relaxed)) ? 1 : 0;
}

int isSet(void* stop) { return static_cast<const std::atomic<bool>*>(stop)->load(std::memory_order_relaxed) ? 1 : 0; }

tl::unexpected<Error> named(Error error, const std::string& path) {
  if (error.code == ErrorCode::kForeign)
    error.message = fmt::format("project '{}': not a database; expected a .stepscope file", path);
  else
    error.message = fmt::format("{}{}; expected a readable .stepscope file{}",
                                error.message.starts_with("project '") ? "" : fmt::format("project '{}': ", path),
                                error.message, error.code == ErrorCode::kCorrupt ? kRecoverHint : "");
  return tl::make_unexpected(std::move(error));
}

}  // namespace

Status harden(const Connection& connection, bool reader, bool defensive) {
  sqlite3* db = connection.handle();
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, defensive ? 1 : 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 256);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 250000);
  sqlite3_hard_heap_limit64(std::int64_t{1} << 30);
  if (!reader) return {};
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return connection.execute(
      "PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON; PRAGMA wal_autocheckpoint = 0; PRAGMA query_only = ON;");
}

Result<int> checkIdentity(const Connection& connection, const std::string& path) {
  auto id = connection.integer("PRAGMA application_id");
  if (!id) return named(id.error(), path);
  if (const auto pages = connection.integer("PRAGMA page_count"); pages && *pages == 0)
    return fail(ErrorCode::kForeign, fmt::format("project '{}': the file is empty; expected a .stepscope project", path));
  if (*id != kApplicationId)
    return fail(ErrorCode::kForeign,
                fmt::format("project '{}': application id {:#x}; expected {:#x}, a project of Stepscope", path,
                            static_cast<std::uint32_t>(*id), kApplicationId));
  auto version = connection.integer("PRAGMA user_version");
  if (!version) return named(version.error(), path);
  if (*version <= kSchemaVersion) {
    if (*version < 1)
      return fail(ErrorCode::kCorrupt, fmt::format("project '{}': schema version {}; expected 1 or more", path, *version));
    return static_cast<int>(*version);
  }
  auto oldest = connection.integer("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_compatible_version'");
  if (!oldest || *oldest < 1 || *oldest > kSchemaVersion)
    return fail(ErrorCode::kNewer,
                fmt::format("project '{}': schema version {}; this program reads up to {}; hint: use a newer Stepscope",
                            path, *version, kSchemaVersion));
  return static_cast<int>(*version);
}

void stopWhen(const Connection& connection, const std::atomic<bool>& stop) {
  sqlite3_progress_handler(connection.handle(), 1000, isSet, const_cast<std::atomic<bool>*>(&stop));
}

Result<bool> quickCheck(const Connection& connection, const std::string& path, const std::atomic<bool>* stop) {
  countWholeCheck();
  auto pages = connection.integer("PRAGMA page_count");
  auto pageSize = connection.integer("PRAGMA page_size");
  if (!pages) return named(pages.error(), path);
  const double gigabytes = static_cast<double>(*pages) * static_cast<double>(pageSize.value_or(4096)) / (1 << 30);
  Until until{Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(2000 + 4000 * gigabytes)), stop};
  sqlite3_progress_handler(connection.handle(), 10000, isOver, &until);
  std::string found;
  Status outcome;
  {
    auto statement = connection.prepare("PRAGMA quick_check(1)");
    if (!statement) {
      outcome = tl::make_unexpected(statement.error());
    } else {
      if (statement->next()) found = statement->text(0);
      outcome = statement->status();
    }
  }
  sqlite3_progress_handler(connection.handle(), 0, nullptr, nullptr);
  if (!outcome && outcome.error().code == ErrorCode::kCancelled) return false;
  if (!outcome) return named(outcome.error(), path);
  if (found != "ok")
    return fail(ErrorCode::kCorrupt, fmt::format("project '{}': damaged ({}){}", path, found, kRecoverHint));
  return true;
}

Status checkSchema(const Connection& connection, const std::string& path, bool newer) {
  SS_STORE_ASSIGN(Statement objects, connection.prepare("SELECT type, name, coalesce(sql, '') FROM sqlite_schema"));
  while (objects.next()) {
    const std::string type = objects.text(0);
    const bool isVirtual = objects.text(2).starts_with("CREATE VIRTUAL");
    if (type == "trigger" || type == "view" || isVirtual)
      return fail(ErrorCode::kCorrupt, fmt::format("project '{}': holds the {} '{}'; a project has none", path,
                                                   isVirtual ? "virtual table" : type, objects.text(1)));
  }
  if (auto status = objects.status(); !status) return named(status.error(), path);
  for (const Table& table : tables()) {
    std::set<std::string, std::less<>> present;
    SS_STORE_ASSIGN(Statement columns, connection.prepare("SELECT name FROM pragma_table_info(?)"));
    columns.bind(table.name);
    while (columns.next()) present.insert(columns.text(0));
    if (auto status = columns.status(); !status) return named(status.error(), path);
    for (const auto& column : table.columns)
      if (!present.contains(column.name))
        return fail(newer ? ErrorCode::kNewer : ErrorCode::kCorrupt,
                    fmt::format("project '{}': column {}.{} is missing; expected the schema of version {}", path, table.name,
                                column.name, kSchemaVersion));
  }
  return {};
}

}  // namespace stepscope::storage
