// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a recorded run as the views show them.
#pragma once

#include <map>
#include <vector>

#include "storage/project.h"
#include "views/common/rank_times.h"
#include "views/common/snapshot_store.h"
#include "views/common/step_plans.h"

namespace stepscope {

// A run may have millions of steps: all of them become columns. Records are made of the newest 1,024, and of older ones that
// kept a batch (500 of them) or statistics (fewer the older they are, 2,500 in all); the newest 20 have the times of their
// instructions, `plans` what these ran under, and `ranks` what other processes did in them; `newest` is the newest plan of
// the run. Nothing where the steps cannot be read.
void readSteps(const storage::Project& project, std::int64_t run, const PlanOfStep& newest, StepSeries& series,
               std::vector<StepPtr>& records, std::map<std::int64_t, PlanOfStep>& plans,
               std::map<std::int64_t, StepRanksPtr>& ranks);

// What the file has of one step: the times of its instructions, the statistics of its values, its batch. nullptr where the
// run has no such step. Run 0 is the newest. `under`: the plan that it ran under, where the file names it; `ranks`: what
// other processes did in it, if there were any.
storage::Result<StepPtr> readStepRecord(const storage::Project& project, std::int64_t run, std::int64_t step,
                                        PlanOfStep& under, StepRanksPtr& ranks);

// A step that stands in the window, with its loss (NaN: it has none).
struct StandingStep {
  std::int64_t step = 0;
  double loss = 0;
};
// Several of them, each as readStepRecord() gives it, of the newest run that has it with this loss: another set-up begins a
// run, which goes on from the steps of the one before. `plans`: what those with times ran under. A step that is not there,
// or cannot be read, is left out.
std::vector<StepPtr> readStepRecords(const storage::Project& project, const std::vector<StandingStep>& steps,
                                     std::map<std::int64_t, PlanOfStep>& plans);

}  // namespace stepscope
