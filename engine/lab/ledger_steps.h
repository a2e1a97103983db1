// The ledger of the present step: steps beside the run with the times of their instructions, of which the one with the
// median time is taken. The run, its state and its plan stay as they are.
#pragma once

#include <functional>

#include "engine/lab/ledger.h"
#include "engine/lab/side_step.h"

namespace stepscope {

inline constexpr int kMostLedgerSteps = 1000;

// `steps`: that are measured, after one that warms up; 0: five, or fewer of slow ones. `progress` may be null. The ledger
// says the number of the subject's step. Errors: those of SideStep::make and of running; kCancelled.
Result<Ledger> measureLedger(
    SideSubject subject, int steps,
    const std::function<void(const std::string& what, std::int64_t done, std::int64_t total)>& progress);

}  // namespace stepscope
