// What the pairs of times of a session say: verdicts, corrected for all of them, and the order of the report.
#pragma once

#include <string_view>

#include "engine/snapshot/lab.pb.h"

namespace stepscope {

// The options of trials that compare the present plan with itself: made twice, and made to wait for 5 % of every step.
inline constexpr std::string_view kTrialOfNothing = "(nothing)", kSlowedTrial = "(5 % slower)";

// To be called when all pairs are there. Counts what was found of nothing and of what was slowed down; sorts the fastest
// first, then what has no times, then the pairs of the plan with itself.
void giveVerdicts(snapshot::TrialsReport& report);

}  // namespace stepscope
