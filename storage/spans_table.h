// The tables `spans` and `spans_of_ranks` for SQL: the packed spans of every step as rows. Read-only virtual tables that
// exist in our connections only; nothing of them is in the file. Internal to storage.
#pragma once

#include "storage/error.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

// Columns: step_id, instruction, node, begin_ns, ns, thread. `step_id = …` is looked up directly. Those of ranks have column
// rank too, and the spans of all processes of a run on the clock of rank 0; a run of one process has those of rank 0.
Status registerSpansTables(const Connection& connection);

}  // namespace stepscope::storage
