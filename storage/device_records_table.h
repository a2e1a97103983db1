// The table `device_records` for SQL: what a device did in each step as rows, its waits and overhead among them. Internal to
// storage.
#pragma once

#include "storage/error.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

// Columns: step_id, kind ("kernel", "copy in", "copy out", "copy within", "fill", "stream wait", "host wait", "overhead"),
// what (name of the kernel; what was waited for; what overhead was spent on; else empty), instruction and stream (NULL:
// none), called_ns and returned_ns (of the call; NULL where it is not known), begin_ns, ns, bytes. `step_id = …` is looked
// up directly.
Status registerDeviceRecordsTable(const Connection& connection);

}  // namespace stepscope::storage
