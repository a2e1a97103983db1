// SPDX-License-Identifier: GPL-3.0-or-later
// Which recorded steps a sum over steps counts: the newest ones with spans, without warm-up as long as others are there. The
// first step of a plan is warm-up: caches are cold and memory is touched for the first time.
#pragma once

#include "views/common/snapshot_store.h"
#include "views/common/step_plans.h"

namespace stepscope {

struct CountedSteps {
  std::vector<StepPtr> steps;  // ascending
  int warmUp = 0;              // steps that were left out for it
  int others = 0;              // steps of another plan, likewise: their instructions have other numbers

  // ", 1 warm-up step left out", ", 3 of another plan left out", or nothing.
  QString leftOut() const;
};

// Of the newest `most` steps, or of those that reach into the range where begin < end; with `plans` of the
// plan that is shown alone.
CountedSteps countedSteps(const std::vector<StepPtr>& steps, std::size_t most, std::int64_t begin, std::int64_t end,
                          const StepPlans* plans = nullptr);

// The newest step, where it ran under the plan that is shown; else nullptr: what was measured of it is of no use here.
const snapshot::StepRecord* newestOfPlan(const SnapshotStore& store);

}  // namespace stepscope
