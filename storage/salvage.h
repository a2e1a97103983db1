// What can be read of a damaged project, copied into a database that is whole.
//
// A damaged page makes SQLite refuse the rows on it, and those that are reached through it, and nothing else. Each table is
// read in the order of its key; where a row cannot be read, the next key that can is sought by doubling and halving, so a
// page costs about a hundred seeks and not the rest of the table. A table without rowid is read from its end too.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "storage/sqlite.h"

namespace stepscope::storage {

// A stretch of keys that could not be read.
struct KeyGap {
  std::int64_t first = 0;
  std::optional<std::int64_t> last;  // empty: to the end of the table
  std::int64_t run = 0;              // runs.id of the row before it, 0 = none
};

struct SalvagedTable {
  std::string name;
  std::int64_t rows = 0;      // that were read
  std::vector<KeyGap> gaps;   // in the order of the keys
  std::string key;            // what the keys are: "id", "run" …
  std::string whyIncomplete;  // empty: nothing is missing
};

struct Salvage {
  std::vector<SalvagedTable> tables;  // those that the file has, and those it should have
  bool complete() const;
  // "steps: ids 120–152 cannot be read": one entry for each table of which something is missing.
  std::vector<std::string> missing() const;
};

// Copies tables and indexes of `from`, as far as they are ours, into the empty database `to`, with the identity of the file.
// Stops at `deadline`, and when more than twice `fileBytes` was copied (a hostile file can show the same page many times);
// both are said in whyIncomplete. Errors: those of `to`; kCorrupt when not even the list of tables can be read.
Result<Salvage> salvage(const Connection& from, const Connection& to, std::int64_t fileBytes,
                        std::optional<std::chrono::steady_clock::time_point> deadline);

// Reads the project at `path` as far as possible and writes it to the new file `target`, migrated to the present schema.
// What is missing becomes rows of the table `lost`. Errors: kExists, kForeign, kNewer, kCorrupt when nothing can be read,
// kIo.
Result<Salvage> recoverProject(const std::filesystem::path& path, const std::filesystem::path& target);

}  // namespace stepscope::storage
