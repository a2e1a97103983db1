// The table `spans` for SQL: the packed spans of every step as rows. A read-only virtual table that exists in our
// connections only; nothing of it is in the file. Internal to storage.
#pragma once

#include "storage/error.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

// Columns: step_id, instruction, node, begin_ns, ns, thread. `step_id = …` is looked up directly.
Status registerSpansTable(const Connection& connection);

}  // namespace stepscope::storage
