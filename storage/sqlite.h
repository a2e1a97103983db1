// A thin owner of a SQLite connection and its statements. Internal to storage: no other folder includes it.
//
// Thread: a connection and its statements are used by one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "storage/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stepscope::storage {

// A prepared statement. Parameters are bound in order, columns read by index.
//
//   auto rows = connection.prepare("SELECT id, name FROM runs WHERE id > ?");
//   rows->bind(5);
//   while (rows->next()) use(rows->integer(0), rows->text(1));
//   SS_STORE_TRY(rows->status());
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  // Binds the next parameters. Texts and blobs are borrowed until reset(). NaN is stored as the text 'NaN', because a
  // REAL column would turn it into NULL ("not computed").
  template <typename... Values>
  Statement& bind(const Values&... values) {
    (bindNext(values), ...);
    return *this;
  }

  bool next();            // false at the end and on error
  Status status() const;  // error of the last next()
  Status run();           // runs to the end, then resets
  void reset();           // ready to be bound again

  std::int64_t integer(int column) const;
  double real(int column) const;                         // the text 'NaN' reads as NaN
  std::optional<double> optionalReal(int column) const;  // empty for NULL
  std::string text(int column) const;
  std::string_view blob(int column) const;  // valid until the next step
  bool isNull(int column) const;
  sqlite3_stmt* handle() const { return handle_; }

 private:
  void bindNext(std::int64_t value);
  void bindNext(int value) { bindNext(static_cast<std::int64_t>(value)); }
  void bindNext(bool value) { bindNext(static_cast<std::int64_t>(value)); }
  void bindNext(double value);
  void bindNext(std::string_view value);
  void bindNext(const std::string& value) { bindNext(std::string_view(value)); }
  void bindNext(const char* value) { bindNext(std::string_view(value)); }
  void bindNext(std::span<const char> blob);
  void bindNext(std::nullptr_t);
  template <typename T>
  void bindNext(const std::optional<T>& value) {
    value ? bindNext(*value) : bindNext(nullptr);
  }

  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
  int code_ = 0;
};

class Connection {
 public:
  enum class Mode { kRead, kWrite, kCreate };

  // `path` must be absolute and free of symbolic links.
  static Result<Connection> open(const std::string& path, Mode mode);
  // To read, although pages are missing at its end or its list of tables is damaged. Never defensive.
  static Result<Connection> openDamaged(const std::string& path);
  // An empty database of this connection alone, in memory as long as it is small.
  static Result<Connection> openTemporary();

  Connection() = default;
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  Result<Statement> prepare(std::string_view sql) const;
  Status execute(const std::string& sql) const;              // one or more statements without parameters
  Result<std::int64_t> integer(std::string_view sql) const;  // first column of the first row, 0 when there is none
  std::int64_t lastRowId() const;
  sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

// While it lives, all that the connection reads is of one moment, and the locks of the file are taken once instead of by
// every statement. Inside of another transaction it does nothing. The connection outlives it.
class ReadTransaction {
 public:
  explicit ReadTransaction(const Connection& connection);
  ~ReadTransaction();
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

 private:
  const Connection& connection_;
  bool own_ = false;
};

// The error that the connection reports for `code`, with our code for it.
Error sqliteError(sqlite3* handle, int code);

}  // namespace stepscope::storage
