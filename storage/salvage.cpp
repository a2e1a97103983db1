#include "storage/salvage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>

#include "storage/harden.h"
#include "storage/project.h"
#include "storage/schema.h"

namespace stepscope::storage {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kFirstKey = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLastKey = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kAlwaysCopied = 1 << 20;  // bytes

int pastDeadline(void* deadline) { return Clock::now() > *static_cast<const Clock::time_point*>(deadline) ? 1 : 0; }

const char* plural(std::int64_t n) { return n == 1 ? "" : "s"; }

std::int64_t rowBytes(sqlite3_stmt* row) {
  std::int64_t bytes = 16;
  for (int c = 0; c < sqlite3_column_count(row); ++c) bytes += sqlite3_column_bytes(row, c);
  return bytes;
}

// Reads one table into another of the same columns.
class TableCopy {
 public:
  TableCopy(const Connection& from, const Connection& to, std::int64_t& budget) : from_(from), to_(to), budget_(budget) {}

  Result<SalvagedTable> copy(const std::string& name) {
    table_.name = name;
    if (Status known = readKey(); !known) {
      table_.whyIncomplete = "its columns cannot be read";
      return std::move(table_);
    }
    const std::string places = fmt::format("{}", fmt::join(std::vector<std::string>(columns_.size(), "?"), ", "));
    SS_STORE_ASSIGN(insert_, to_.prepare(fmt::format("INSERT OR IGNORE INTO {} ({}) VALUES ({})", name, list_, places)));
    if (integerKey_) SS_STORE_TRY(copyAscending());
    if (!integerKey_ || (!rowId_ && !table_.gaps.empty())) SS_STORE_TRY(copyFromBothEnds());
    return std::move(table_);
  }

 private:
  enum class End { kAll, kDamage, kStopped };

  Status readKey() {
    SS_STORE_ASSIGN(Statement rows, from_.prepare("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid"));
    rows.bind(table_.name);
    std::vector<std::pair<std::int64_t, std::string>> keys;
    std::string keyType;
    while (rows.next()) {
      columns_.push_back(fmt::format("\"{}\"", rows.text(0)));
      if (rows.text(0).find('"') != std::string::npos) return fail(ErrorCode::kCorrupt, "a column with a quote in its name");
      if (rows.text(0) == "run") runColumn_ = static_cast<int>(columns_.size());
      if (rows.integer(2) == 1) keyType = rows.text(1), table_.key = rows.text(0);
      if (rows.integer(2) > 0) keys.emplace_back(rows.integer(2), columns_.back());
    }
    SS_STORE_TRY(rows.status());
    if (columns_.empty()) return fail(ErrorCode::kCorrupt, "no columns");
    list_ = fmt::format("{}", fmt::join(columns_, ", "));
    rowId_ = from_.prepare(fmt::format("SELECT rowid FROM {}", table_.name)).has_value();
    integerKey_ = rowId_ || keyType == "INTEGER";
    std::sort(keys.begin(), keys.end());
    if (rowId_) {
      key_ = order_ = "rowid";
    } else if (!keys.empty()) {
      key_ = keys.front().second;
      std::vector<std::string> names;
      for (const auto& [place, column] : keys) names.push_back(column);
      order_ = fmt::format("{}", fmt::join(names, ", "));
      descending_ = fmt::format("{} DESC", fmt::join(names, " DESC, "));
    } else {
      return fail(ErrorCode::kCorrupt, "no key");
    }
    return {};
  }

  Result<End> take(Statement& rows) {
    while (rows.next()) {
      budget_ -= rowBytes(rows.handle());
      if (budget_ < 0) {
        table_.whyIncomplete = "more than twice the size of the file was read";
        return End::kStopped;
      }
      if (integerKey_) {
        const std::int64_t key = rows.integer(0);
        if (key < last_) return End::kDamage;  // out of order: the same page once more
        last_ = key;
        ++stretch_;
      }
      if (runColumn_ > 0) run_ = rows.integer(runColumn_);
      for (int c = 1; c <= static_cast<int>(columns_.size()); ++c)
        sqlite3_bind_value(insert_.handle(), c, sqlite3_column_value(rows.handle(), c));
      SS_STORE_TRY(insert_.run());
      table_.rows += sqlite3_changes(to_.handle());
    }
    const Status status = rows.status();
    if (status) return End::kAll;
    if (status.error().code == ErrorCode::kCancelled) {
      table_.whyIncomplete = "the time did not suffice";
      return End::kStopped;
    }
    return End::kDamage;
  }

  // The row with the smallest key from `at` on can be read, or there is none.
  bool readableAt(std::int64_t at) {
    auto row = from_.prepare(fmt::format("SELECT {}, {} FROM {} NOT INDEXED WHERE {} >= ? ORDER BY {} LIMIT 1", key_, list_,
                                         table_.name, key_, order_));
    if (!row) return false;
    row->bind(at);
    const bool found = row->next() && row->integer(0) >= at;
    return found || row->status().has_value();
  }

  // The first key above `bad` from where on reading goes on; empty: there is none.
  std::optional<std::int64_t> afterDamage(std::int64_t bad) {
    std::uint64_t step = 1;
    std::int64_t fails = bad;
    while (true) {
      const std::uint64_t left = static_cast<std::uint64_t>(kLastKey) - static_cast<std::uint64_t>(fails);
      if (left == 0) return std::nullopt;
      const auto tried = static_cast<std::int64_t>(static_cast<std::uint64_t>(fails) + std::min(step, left));
      if (readableAt(tried)) {
        std::int64_t works = tried;
        while (static_cast<std::uint64_t>(works) - static_cast<std::uint64_t>(fails) > 1) {
          const auto middle =
              static_cast<std::int64_t>(static_cast<std::uint64_t>(fails) +
                                        (static_cast<std::uint64_t>(works) - static_cast<std::uint64_t>(fails)) / 2);
          (readableAt(middle) ? works : fails) = middle;
        }
        return works;
      }
      fails = tried;
      step = step > (std::uint64_t{1} << 62) ? step : step * 2;
    }
  }

  Status copyAscending() {
    for (std::int64_t from = kFirstKey;;) {
      auto rows = from_.prepare(fmt::format("SELECT {}, {} FROM {} NOT INDEXED WHERE {} >= ? ORDER BY {}", key_, list_,
                                            table_.name, key_, order_));
      End end = End::kDamage;
      last_ = from;
      stretch_ = 0;
      if (rows) {
        rows->bind(from);
        SS_STORE_ASSIGN(end, take(*rows));
      }
      if (end != End::kDamage) return {};
      table_.whyIncomplete = "damaged";
      if (stretch_ > 0 && last_ == kLastKey) return {};
      const std::int64_t bad = stretch_ > 0 ? last_ + 1 : from;
      const auto next = afterDamage(bad);
      table_.gaps.push_back({bad, next ? std::optional(*next - 1) : std::nullopt, run_});
      if (!next) return {};
      from = *next;
    }
  }

  Status copyFromBothEnds() {
    const bool wasInteger = std::exchange(integerKey_, false);
    for (const std::string& order : {order_, descending_.empty() ? order_ + " DESC" : descending_}) {
      auto rows =
          from_.prepare(fmt::format("SELECT {}, {} FROM {} NOT INDEXED ORDER BY {}", key_, list_, table_.name, order));
      End end = End::kDamage;
      if (rows) {
        SS_STORE_ASSIGN(end, take(*rows));
      }
      if (end == End::kAll) break;
      if (end == End::kDamage) table_.whyIncomplete = "damaged";
    }
    integerKey_ = wasInteger;
    return {};
  }

  const Connection& from_;
  const Connection& to_;
  std::int64_t& budget_;
  SalvagedTable table_;
  Statement insert_;
  std::vector<std::string> columns_;
  std::string list_, key_, order_, descending_;
  bool rowId_ = true, integerKey_ = true;
  int runColumn_ = 0;  // in a row, which begins with the key
  std::int64_t last_ = kFirstKey, stretch_ = 0, run_ = 0;
};

bool isOurs(const std::string& name) {
  return std::any_of(tables().begin(), tables().end(), [&name](const Table& table) { return table.name == name; });
}

struct Objects {
  std::vector<std::string> tables, statements, indexes;
};

// The statements are those of the file, because an older one has other columns. Only what makes a plain table or index is
// run.
Result<Objects> readObjects(const Connection& from) {
  Objects objects;
  SS_STORE_ASSIGN(Statement rows,
                  from.prepare("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY rowid"));
  while (rows.next()) {
    const std::string sql = rows.text(3);
    if (!isOurs(rows.text(2)) || sql.find(';') != std::string::npos) continue;
    if (rows.text(0) == "table" && sql.starts_with("CREATE TABLE ")) {
      objects.tables.push_back(rows.text(1));
      objects.statements.push_back(sql);
    } else if (rows.text(0) == "index" && sql.starts_with("CREATE INDEX ")) {
      objects.indexes.push_back(sql);
    }
  }
  SS_STORE_TRY(rows.status());
  return objects;
}

Status writeLost(const Connection& to, const SalvagedTable& table) {
  SS_STORE_ASSIGN(Statement row, to.prepare("INSERT INTO lost (run, what, amount, first_step, last_step, reason, advice) "
                                            "VALUES (?, ?, ?, -1, -1, ?, 'keep the damaged file')"));
  for (const KeyGap& gap : table.gaps) {
    const std::uint64_t width =
        gap.last ? static_cast<std::uint64_t>(*gap.last) - static_cast<std::uint64_t>(gap.first) + 1 : 0;
    const bool known = gap.last && gap.first > 0 && width > 0;
    row.bind(gap.run, table.name, known ? static_cast<std::int64_t>(width) : std::int64_t{1},
             known ? "the file was damaged: at most so many rows could not be recovered"
                   : "the file was damaged: at least this could not be recovered");
    SS_STORE_TRY(row.run());
  }
  return {};
}

}  // namespace

bool Salvage::complete() const {
  return std::all_of(tables.begin(), tables.end(), [](const SalvagedTable& t) { return t.whyIncomplete.empty(); });
}

std::vector<std::string> Salvage::missing() const {
  constexpr std::size_t kMostGaps = 3;
  std::vector<std::string> lines;
  for (const SalvagedTable& table : tables) {
    if (table.whyIncomplete.empty()) continue;
    std::string keys;
    for (std::size_t i = 0; i < std::min(kMostGaps, table.gaps.size()); ++i) {
      const KeyGap& gap = table.gaps[i];
      const std::string first = gap.first == kFirstKey ? "the first" : fmt::format("{}", gap.first);
      const std::string last = gap.last ? fmt::format("{}", *gap.last) : "the last";
      keys +=
          fmt::format("{}{} {} to {}", i ? ", " : "; cannot be read: ", table.key.empty() ? "row" : table.key, first, last);
    }
    if (table.gaps.size() > kMostGaps) keys += fmt::format(" and {} more stretches", table.gaps.size() - kMostGaps);
    lines.push_back(fmt::format("table {}: {}; {} row{} could be read{}", table.name, table.whyIncomplete, table.rows,
                                plural(table.rows), keys));
  }
  return lines;
}

Result<Salvage> salvage(const Connection& from, const Connection& to, std::int64_t fileBytes,
                        std::optional<std::chrono::steady_clock::time_point> deadline) {
  SS_STORE_ASSIGN(const Objects objects, readObjects(from));
  SS_STORE_ASSIGN(const std::int64_t version, from.integer("PRAGMA user_version"));
  SS_STORE_TRY(
      to.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN", kApplicationId, version)));
  if (deadline) sqlite3_progress_handler(from.handle(), 10000, pastDeadline, &*deadline);
  Salvage result;
  std::int64_t budget = 2 * std::min(fileBytes, kLastKey / 4) + kAlwaysCopied;
  Status status;
  for (std::size_t i = 0; i < objects.tables.size() && status; ++i) {
    if (!(status = to.execute(objects.statements[i]))) break;
    auto table = TableCopy(from, to, budget).copy(objects.tables[i]);
    if (table)
      result.tables.push_back(std::move(*table));
    else
      status = tl::make_unexpected(table.error());
  }
  sqlite3_progress_handler(from.handle(), 0, nullptr, nullptr);
  for (const std::string& index : objects.indexes)
    if (status) status = to.execute(index);
  if (status) status = to.execute("COMMIT");
  if (!status) return tl::make_unexpected(status.error());
  return result;
}

Result<Salvage> recoverProject(const std::filesystem::path& path, const std::filesystem::path& target) {
  std::error_code error;
  const std::string source = std::filesystem::canonical(path, error).string();
  if (error || !std::filesystem::is_regular_file(source, error))
    return fail(ErrorCode::kNotFound, fmt::format("project '{}': no such file; expected a .stepscope file", path.string()));
  const std::string absolute = std::filesystem::absolute(target, error).string();
  if (std::filesystem::exists(std::filesystem::symlink_status(target, error)))
    return fail(ErrorCode::kExists, fmt::format("recovered project '{}': exists; expected a new file", target.string()));
  Result<Salvage> result = fail(ErrorCode::kIo, "");
  Status written;
  {
    SS_STORE_ASSIGN(const Connection from, Connection::openDamaged(source));
    SS_STORE_TRY(harden(from, true, false));
    SS_STORE_ASSIGN(const int version, checkIdentity(from, source));
    if (version > kSchemaVersion)
      return fail(ErrorCode::kNewer,
                  fmt::format("project '{}': schema version {}; this program recovers up to {}; hint: use "
                              "a newer Stepscope",
                              source, version, kSchemaVersion));
    SS_STORE_ASSIGN(const Connection to, Connection::open(absolute, Connection::Mode::kCreate));
    SS_STORE_TRY(harden(to, false));
    result = salvage(from, to, static_cast<std::int64_t>(std::filesystem::file_size(source, error)), std::nullopt);
    if (result)
      for (const SalvagedTable& table : result->tables)
        if (written) written = writeLost(to, table);
  }
  if (result && written) {
    auto project = Project::openForWriting(target);
    written = project ? project->close() : tl::make_unexpected(project.error());
  }
  if (!result || !written) {
    for (const char* rest : {"", "-journal", "-wal", "-shm"})
      std::filesystem::remove(absolute + rest, error);  // half a project would be taken for a whole one
    return tl::make_unexpected(result ? written.error() : result.error());
  }
  return result;
}

}  // namespace stepscope::storage
