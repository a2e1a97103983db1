// Answers of the laboratory (engine/lab) as messages.
#pragma once

#include "engine/lab/bisect.h"
#include "engine/lab/golden_check.h"
#include "engine/lab/ledger.h"
#include "engine/snapshot/lab.pb.h"

namespace stepscope {

class Session;

// The comparison with PyTorch; each tensor that differs is an alert, the worst first, kMostGoldenAlerts at most.
inline constexpr int kMostGoldenAlerts = 50;
snapshot::GoldenComparison goldenAnswer(const GoldenReport& report, const Session& session);

// All of a ledger, and all that a bisection found.
snapshot::LedgerReport ledgerAnswer(const Ledger& ledger);
// See above.
snapshot::BisectFinding bisectAnswer(const BisectReport& report);

}  // namespace stepscope
