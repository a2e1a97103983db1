// Tables for SQL whose rows lie packed in blobs, a blob for a step. Read-only virtual tables that exist in our connections
// only; nothing of them is in the file. Internal to storage.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <memory>

#include "storage/sqlite.h"

namespace stepscope::storage {

// The rows of one blob.
class PackedRows {
 public:
  virtual ~PackedRows() = default;
  virtual std::size_t size() const = 0;
  // Gives the value of a column of a row as the result.
  virtual void column(std::size_t row, int index, sqlite3_context* result) const = 0;
};

// What a table is read from. Statements give a row for each blob, with whatever `unpack` reads; that of one step has the
// step as its parameter. Column 0 of the table is the step, and `step_id = …` is looked up directly.
struct PackedTable {
  const char* name;
  const char* columns;  // CREATE TABLE …
  const char* one;      // of one step
  const char* all;
  std::unique_ptr<PackedRows> (*unpack)(sqlite3_stmt* blob);  // null: it is damaged
};

// `table` lives as long as the connection.
Status registerPackedTable(const Connection& connection, const PackedTable& table);

}  // namespace stepscope::storage
