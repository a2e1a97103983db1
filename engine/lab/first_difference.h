// Two plans of one step side by side: the first value that differs, and the smallest sub-graph that shows it alone.
#pragma once

#include "engine/lab/bisect.h"

namespace stepscope {

// Fills what BisectReport says of values and sub-graph, and writes the files that the question wants. `reference` and
// `options` differ in little, so the plans have most values in common. Takes memory for all values of a step; where that is
// not there, `note` says so. Errors: as bisect().
Status findFirstDifference(const BisectSubject& subject, const BisectQuestion& question, const TrainOptions& reference,
                           const TrainOptions& options, BisectReport& report);

}  // namespace stepscope
