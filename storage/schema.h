// Every table and column of the project file, declared once together with its documentation.
//
// The DDL, the `docs` table inside the file, the check of foreign files and the help of the SQL view all come from here.
// Conventions: times are nanoseconds of the worker's monotonic clock unless the name ends in `_at` (nanoseconds since 1970,
// a label only); sizes are bytes; -1 in a node, value or instruction column means "none"; NaN is stored as the text 'NaN'
// and NULL means "not computed"; `run` refers to runs.id everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::storage {

inline constexpr std::int32_t kApplicationId = 0x53545053;  // "STPS"
inline constexpr int kSchemaVersion = 17;                   // of the files this program writes
inline constexpr int kLastCompatibleVersion = 1;            // oldest program version that can read such a file

struct Column {
  std::string_view name;
  std::string_view type;  // with its constraint: "INTEGER PRIMARY KEY", "TEXT NOT NULL"
  std::string_view doc;
};

struct Table {
  std::string_view name;
  std::string_view doc;
  std::vector<Column> columns;
  std::string_view constraint;            // "PRIMARY KEY (run, id)" …, or empty
  std::vector<std::string_view> indexes;  // column lists: "run, step"
  bool withoutRowId = false;
};

// Every table of the file, in an order in which they can be created.
const std::vector<Table>& tables();

// CREATE TABLE and CREATE INDEX statements of one table.
std::string createStatements(const Table& table);

}  // namespace stepscope::storage
