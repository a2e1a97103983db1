// SQL of what stands of a run: rows that no rewind took back (queries.h, Standing). Internal to storage.
//
// A file of before schema version 16 does not say where a run went back. There, executions of steps tell it as soon as a
// step followed; and alerts and statistics of steps behind the newest one do not stand, if such a step was ever executed.
#pragma once

#include <string>
#include <string_view>

namespace stepscope::storage {

// Condition on rows of `table` (steps, alerts, tensor_stats) of one run: no rewind of the file took them back. `run`: an
// expression for runs.id.
std::string notTakenBack(int version, std::string_view table, std::string_view run);

// The ids of the steps that stand, in brackets: of run ?1; of the run that an expression names; of all runs of the file.
std::string standingSteps(int version, std::string_view run = "?1");
std::string standingStepsOfAll(int version);

}  // namespace stepscope::storage
