#include "storage/sql.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include "storage/device_records_table.h"
#include "storage/spans_table.h"
#include "storage/sqlite.h"

namespace stepscope::storage {
namespace {

using Clock = std::chrono::steady_clock;

struct Watch {
  Clock::time_point deadline;
  const std::atomic<bool>* cancel = nullptr;
  sqlite3_int64 memory = 0;  // that the database may have in all: a recorder beside it is not its loss
  bool cancelled() const { return cancel && cancel->load(std::memory_order_relaxed); }
  bool greedy() const { return sqlite3_memory_used() > memory; }
};

int shouldStop(void* data) {
  const auto* watch = static_cast<const Watch*>(data);
  return watch->cancelled() || watch->greedy() || Clock::now() > watch->deadline ? 1 : 0;
}

int authorize(void*, int action, const char*, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION: return second && std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_DENY;
  }
}

// Sets the handlers for one query and takes them away again.
class Guard {
 public:
  Guard(sqlite3* db, Watch& watch) : db_(db) {
    sqlite3_set_authorizer(db_, authorize, nullptr);
    sqlite3_progress_handler(db_, 1000, shouldStop, &watch);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    sqlite3_progress_handler(db_, 0, nullptr, nullptr);
    sqlite3_set_authorizer(db_, nullptr, nullptr);
  }

 private:
  sqlite3* db_;
};

tl::unexpected<Error> explain(sqlite3* db, int code, const Watch& watch, const SqlLimits& limits) {
  if (watch.cancelled()) return fail(ErrorCode::kCancelled, "query: cancelled");
  if ((code & 0xff) == SQLITE_NOMEM || ((code & 0xff) == SQLITE_INTERRUPT && Clock::now() <= watch.deadline))
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("query: took more than {} MiB of memory; at most that much; hint: sort and join fewer rows",
                            limits.memory >> 20));
  if ((code & 0xff) == SQLITE_INTERRUPT)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("query: ran for {} ms; at most that long; hint: narrow it with WHERE", limits.time.count()));
  if ((code & 0xff) == SQLITE_AUTH)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("query: {}; expected one statement that only reads", sqlite3_errmsg(db)));
  Error error = sqliteError(db, code);
  return fail(error.code, fmt::format("query: {}; hint: the table `docs` lists tables and columns", sqlite3_errmsg(db)));
}

SqlCell cell(sqlite3_stmt* row, int column, std::size_t& bytes) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER: return std::int64_t{sqlite3_column_int64(row, column)};
    case SQLITE_FLOAT: return sqlite3_column_double(row, column);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, column));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, column));
      bytes += size;
      return std::string(text ? text : "", text ? size : 0);
    }
    case SQLITE_BLOB: return SqlBlob{static_cast<std::size_t>(sqlite3_column_bytes(row, column))};
    default: return std::monostate{};
  }
}

// Another statement after the first? Comments and blanks do not count.
bool hasMore(sqlite3* db, const char* tail) {
  sqlite3_stmt* next = nullptr;
  const int code = sqlite3_prepare_v2(db, tail, -1, &next, nullptr);
  const bool more = code != SQLITE_OK || next != nullptr;
  sqlite3_finalize(next);
  return more;
}

}  // namespace

Result<SqlResult> runSql(const Project& project, const std::string& sql, const SqlLimits& limits,
                         const std::atomic<bool>* cancel) {
  sqlite3* db = project.connection().handle();
  SS_STORE_TRY(registerSpansTables(project.connection()));
  SS_STORE_TRY(registerDeviceRecordsTable(project.connection()));
  const Clock::time_point begin = Clock::now();
  Watch watch{begin + limits.time, cancel, sqlite3_memory_used() + static_cast<sqlite3_int64>(limits.memory)};
  const Guard guard(db, watch);
  sqlite3_stmt* prepared = nullptr;
  const char* tail = nullptr;
  if (const int code = sqlite3_prepare_v2(db, sql.c_str(), -1, &prepared, &tail); code != SQLITE_OK)
    return explain(db, code, watch, limits);
  const Statement statement(prepared);
  if (!prepared) return fail(ErrorCode::kInvalidArgument, "query: empty; expected one statement that only reads");
  if (!sqlite3_stmt_readonly(prepared) || hasMore(db, tail))
    return fail(ErrorCode::kInvalidArgument,
                "query: writes, or is more than one statement; expected one statement that only reads");

  SqlResult result;
  const int columns = sqlite3_column_count(prepared);
  for (int i = 0; i < columns; ++i) {
    const char* name = sqlite3_column_name(prepared, i);
    result.columns.emplace_back(name ? name : "");
  }
  std::size_t bytes = 0;
  int code = SQLITE_OK;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) {
    if (result.rows.size() >= limits.rows || bytes > limits.bytes) {
      result.truncated = true;
      break;
    }
    std::vector<SqlCell>& row = result.rows.emplace_back();
    for (int i = 0; i < columns; ++i) row.push_back(cell(prepared, i, bytes));
    bytes += row.size() * sizeof(SqlCell);
  }
  if (code != SQLITE_ROW && code != SQLITE_DONE) return explain(db, code, watch, limits);
  result.time = Clock::now() - begin;
  return result;
}

std::string sqlCellText(const SqlCell& cell) {
  struct Visitor {
    std::string operator()(std::monostate) const { return {}; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{}", value); }
    std::string operator()(const std::string& value) const { return value; }
    std::string operator()(SqlBlob value) const { return fmt::format("<{} bytes>", value.bytes); }
  };
  return std::visit(Visitor{}, cell);
}

}  // namespace stepscope::storage
