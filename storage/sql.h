// SQL of the user over an open project: reading only, within limits.
//
// One SELECT (or VALUES, WITH … SELECT) statement. Everything else is refused by the database's authorizer, not by looking
// at the text. Besides the tables of schema.h there is `spans` (step_id, instruction, node, begin_ns, ns, thread), unpacked
// from step_spans, `spans_of_ranks`, the same with column rank, from step_spans and rank_spans, and `device_records`, what a
// device did (device_records_table.h), from device_work.
// Thread: runs in the calling thread; `cancel` may be set from another one and works within about a millisecond.
// Errors: kSql (mistake in the statement), kInvalidArgument (not one reading statement), kLimitExceeded (time, memory),
// kCancelled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

struct SqlLimits {
  std::size_t rows = 10'000;
  std::size_t bytes = std::size_t{64} << 20;  // of the result
  std::chrono::milliseconds time{10'000};
  std::size_t memory = std::size_t{256} << 20;  // that the database may take for it, besides the result
};

struct SqlBlob {
  std::size_t bytes = 0;
};  // contents are not shown
using SqlCell = std::variant<std::monostate, std::int64_t, double, std::string, SqlBlob>;

struct SqlResult {
  std::vector<std::string> columns;
  std::vector<std::vector<SqlCell>> rows;
  bool truncated = false;  // there were more rows, or they were too large
  std::chrono::nanoseconds time{0};
};

// Runs one statement that only reads. Errors: it writes, takes longer than the limits allow, or was cancelled.
Result<SqlResult> runSql(const Project& project, const std::string& sql, const SqlLimits& limits = {},
                         const std::atomic<bool>* cancel = nullptr);

// A cell as text: integers and reals in full, NULL as "", blobs as "<N bytes>".
std::string sqlCellText(const SqlCell& cell);

}  // namespace stepscope::storage
