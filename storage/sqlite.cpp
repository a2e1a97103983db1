#include "storage/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>

namespace stepscope::storage {
namespace {

ErrorCode translate(int code) {
  switch (code & 0xff) {
    case SQLITE_NOTADB: return ErrorCode::kForeign;
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT: return ErrorCode::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return ErrorCode::kLocked;
    case SQLITE_FULL: return ErrorCode::kDiskFull;
    case SQLITE_READONLY: return ErrorCode::kReadOnly;
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return ErrorCode::kLimitExceeded;
    case SQLITE_INTERRUPT: return ErrorCode::kCancelled;
    case SQLITE_ERROR:
    case SQLITE_AUTH:
    case SQLITE_RANGE: return ErrorCode::kSql;
    default: return ErrorCode::kIo;
  }
}

// SQLite calls it an I/O error, and has forgotten errno by then. The last write went up to the limit.
bool reachedSizeLimit(const std::string& path) {
  constexpr rlim_t kWrite = 65536;  // a page and its frame
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  for (const char* rest : {"", "-wal", "-journal"}) {
    struct stat info = {};
    if (stat((path + rest).c_str(), &info) == 0 && static_cast<rlim_t>(info.st_size) + kWrite > limit.rlim_cur) return true;
  }
  return false;
}

}  // namespace

Error sqliteError(sqlite3* handle, int code) {
  std::string message = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  const char* file = handle ? sqlite3_db_filename(handle, "main") : nullptr;
  ErrorCode translated = translate(code);
  if (translated == ErrorCode::kIo && file && reachedSizeLimit(file)) {
    translated = ErrorCode::kDiskFull;
    message = "the file reached the largest size that is allowed (ulimit -f)";
  }
  const char* expected = translated == ErrorCode::kDiskFull   ? "; expected room for it on its disk"
                         : translated == ErrorCode::kReadOnly ? "; expected a file and a folder that can be written"
                                                              : "";
  return Error{translated, fmt::format("project '{}': {}{}", file ? file : "", message, expected)};
}

Statement::Statement(Statement&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), bound_(other.bound_), code_(other.code_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(bound_, other.bound_);
  std::swap(code_, other.code_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::bindNext(std::int64_t value) { sqlite3_bind_int64(handle_, ++bound_, value); }

void Statement::bindNext(double value) {
  if (std::isnan(value))
    sqlite3_bind_text(handle_, ++bound_, "NaN", 3, SQLITE_STATIC);
  else
    sqlite3_bind_double(handle_, ++bound_, value);
}

void Statement::bindNext(std::string_view value) {
  sqlite3_bind_text64(handle_, ++bound_, value.data() ? value.data() : "", value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::bindNext(std::span<const char> blob) {
  sqlite3_bind_blob64(handle_, ++bound_, blob.data() ? blob.data() : "", blob.size(), SQLITE_STATIC);
}

void Statement::bindNext(std::nullptr_t) { sqlite3_bind_null(handle_, ++bound_); }

bool Statement::next() {
  code_ = sqlite3_step(handle_);
  return code_ == SQLITE_ROW;
}

Status Statement::status() const {
  if (code_ == SQLITE_OK || code_ == SQLITE_ROW || code_ == SQLITE_DONE) return {};
  return tl::make_unexpected(sqliteError(sqlite3_db_handle(handle_), code_));
}

Status Statement::run() {
  while (next()) {
  }
  Status result = status();
  reset();
  return result;
}

void Statement::reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  bound_ = 0;
  code_ = SQLITE_OK;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

double Statement::real(int column) const {
  if (sqlite3_column_type(handle_, column) == SQLITE_TEXT && text(column) == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(handle_, column);
}

std::optional<double> Statement::optionalReal(int column) const {
  if (isNull(column)) return std::nullopt;
  return real(column);
}

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  return data ? std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))) : std::string();
}

std::string_view Statement::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  return data ? std::string_view(data, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))) : std::string_view();
}

bool Statement::isNull(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

Result<Connection> Connection::open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  flags |= mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::kCreate) flags |= SQLITE_OPEN_CREATE;
  Connection connection;
  const int code = sqlite3_open_v2(path.c_str(), &connection.handle_, flags, nullptr);
  if (code != SQLITE_OK)
    return fail(translate(code), fmt::format("project '{}': {}; expected a file that can be {}", path, sqlite3_errstr(code),
                                             mode == Mode::kRead ? "read" : "read and written"));
  sqlite3_busy_timeout(connection.handle_, 2000);
  return connection;
}

Result<Connection> Connection::openDamaged(const std::string& path) {
  SS_STORE_ASSIGN(Connection connection, open(path, Mode::kRead));
  SS_STORE_TRY(connection.execute("PRAGMA writable_schema = ON"));
  return connection;
}

Result<Connection> Connection::openTemporary() {
  Connection connection;
  const int code =
      sqlite3_open_v2("", &connection.handle_,
                      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (code != SQLITE_OK)
    return fail(translate(code),
                fmt::format("temporary database: {}; expected one that can be written", sqlite3_errstr(code)));
  return connection;
}

Connection::Connection(Connection&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

Connection::~Connection() { sqlite3_close_v2(handle_); }

Result<Statement> Connection::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), 0, &statement, nullptr);
  if (code != SQLITE_OK) return tl::make_unexpected(sqliteError(handle_, code));
  return Statement(statement);
}

Status Connection::execute(const std::string& sql) const {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return tl::make_unexpected(sqliteError(handle_, code));
  return {};
}

// Where it cannot begin, the statements themselves say why.
ReadTransaction::ReadTransaction(const Connection& connection) : connection_(connection) {
  own_ = sqlite3_get_autocommit(connection.handle()) != 0 && connection.execute("BEGIN").has_value();
}

ReadTransaction::~ReadTransaction() {
  if (own_) (void)connection_.execute("COMMIT");
}

Result<std::int64_t> Connection::integer(std::string_view sql) const {
  SS_STORE_ASSIGN(Statement statement, prepare(sql));
  std::int64_t value = 0;
  if (statement.next()) value = statement.integer(0);
  SS_STORE_TRY(statement.status());
  return value;
}

std::int64_t Connection::lastRowId() const { return sqlite3_last_insert_rowid(handle_); }

}  // namespace stepscope::storage
