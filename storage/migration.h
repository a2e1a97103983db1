// Bringing the tables of an older project file up to date.
//
// A file carries two numbers: `PRAGMA user_version`, the schema it has, and meta.last_compatible_version, the oldest program
// that may read it. A migration is one step from a version to the next; the list is applied in one transaction after the
// file was copied to "<file>.v<N>.bak", so a failure or a kill leaves either the old file or the new one.
#pragma once

#include <span>
#include <string_view>

#include "storage/error.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

struct Migration {
  int from = 0;          // brings `from` to `from + 1`
  std::string_view doc;  // what changes, and why
  std::string_view sql;  // statements
};

// The migrations of released schemas, ordered. Adding one: bump kSchemaVersion, add a line, add a fixture to the test.
std::span<const Migration> migrations();

// Creates all tables in an empty database, with the identity of the file and the `docs` table.
Status createTables(const Connection& connection);

// Applies `steps` until user_version is `target`, then checks the result. `path` is where the copy goes.
// Errors: kCorrupt when no migration leads on from the version found; database errors.
Status migrate(const Connection& connection, const std::string& path, std::span<const Migration> steps, int target);

// Refreshes the `docs` table from the declarations.
Status writeDocs(const Connection& connection);

}  // namespace stepscope::storage
