// SPDX-License-Identifier: GPL-3.0-or-later
// A ledger as the worker tells it, and as the project file keeps it.
#pragma once

#include <memory>

#include "engine/snapshot/lab.pb.h"
#include "storage/ledger.h"

namespace stepscope {

storage::LedgerRecord ledgerRecord(const snapshot::LedgerReport& report);
// The time is the sum of the lines; a file of a version before 17 says 1 step and nothing of the processor.
snapshot::LedgerReport ledgerReport(const storage::LedgerRecord& record);
// The newest of a run; null: it has none.
std::shared_ptr<const snapshot::LedgerReport> readLedgerReport(const storage::Project& project, std::int64_t run);

}  // namespace stepscope
