// What every connection gets before it looks at the contents of a project file, ours or not. Internal to storage.
#pragma once

#include <atomic>

#include "storage/error.h"
#include "storage/sqlite.h"

namespace stepscope::storage {

// Defensive mode, no trusted schema, no triggers, views or extensions, limits on values, statements and memory.
// A reader also never checkpoints. A connection of openDamaged stays not defensive: SQLite would refuse missing pages again.
Status harden(const Connection& connection, bool reader, bool defensive = true);

// application_id and versions. Errors: kForeign, kNewer (also kCorrupt / kForeign from SQLite). Returns user_version.
Result<int> checkIdentity(const Connection& connection, const std::string& path);

// `quick_check` within 2 s + 4 s per GiB. Returns false when the time did not suffice, or `stop` was set. Errors: kCorrupt.
Result<bool> quickCheck(const Connection& connection, const std::string& path, const std::atomic<bool>* stop = nullptr);

// Every statement from now on ends with kCancelled once `stop`, which outlives the connection, is set.
void stopWhen(const Connection& connection, const std::atomic<bool>& stop);

// The tables and columns must be the declared ones; nothing executable (trigger, view, virtual table) may be there.
// Errors: kCorrupt naming the object.
Status checkSchema(const Connection& connection, const std::string& path, bool newer);

}  // namespace stepscope::storage
