// A run of several processes: what each rank took of every step, and of every collective.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/snapshot/ranks.pb.h"
#include "storage/error.h"
#include "storage/project.h"

namespace stepscope::storage {

// One collective of a step, as one rank saw it. Times in nanoseconds.
struct RankCollective {
  std::string node;
  std::int64_t waitNs = 0;  // until all ranks had come
  std::int64_t moveNs = 0;  // then, until the results were there
  std::int64_t sentBytes = 0;
  std::int64_t beginNs = 0;    // on the clock of rank 0
  std::int64_t exposedNs = 0;  // of waiting and moving, while the rank did nothing else
};

// A step of one rank.
struct RankStep {
  std::int64_t step = 0;
  int rank = 0;
  double loss = 0;
  bool hasLoss = false;
  std::int64_t ns = 0, waitNs = 0, moveNs = 0;
  std::int64_t sentBytes = 0, receivedBytes = 0, plannedSentBytes = 0;
  std::int64_t peakBytes = 0, plannedBytes = 0, stateBytes = 0;
  std::int64_t beginNs = 0;                 // on the clock of rank 0
  std::int64_t exposedNs = 0;               // of its collectives
  std::vector<RankCollective> collectives;  // in their order
  // Of ranks from 1 on, under the plan of rank 0: encodeSpans of its record, whose begin is `beginNs` on its own clock. Not
  // read by readRankSteps.
  std::string spans;
  int spanCount = 0;
};

// Means over the steps of a run but its first one, which warms up.
struct RankRow {
  int rank = 0;
  std::int64_t steps = 0, last = 0;  // in how many steps the others waited for it most
  double ns = 0, exposedNs = 0, waitNs = 0, moveNs = 0, sentBytes = 0, plannedSentBytes = 0;
  std::int64_t peakBytes = 0, plannedBytes = 0, stateBytes = 0;  // the largest
};
struct RankCollectiveRow {
  std::string node;
  std::int64_t steps = 0;
  double meanWaitNs = 0, worstWaitNs = 0;           // over the ranks of a step: their mean, and the one that waited longest
  double moveNs = 0, exposedNs = 0, sentBytes = 0;  // means over ranks and steps
  int last = -1;                                    // the rank that the others waited for in most steps
};
struct RankReport {
  std::vector<RankRow> ranks;
  std::vector<RankCollectiveRow> collectives;  // as they come in a step
};

// What each rank did in the steps of a run from `first` to `last`, by step and rank. Empty as below; and for one that was
// recorded by a version before 13, which does not say when.
Result<std::vector<RankStep>> readRankSteps(const Project& project, std::int64_t run, std::int64_t first, std::int64_t last);

// What each rank did in row `stepId` of `steps`, with the times of its instructions where they are kept. Without ranks for a
// run of one process, and for files of a version before 12 that are opened for reading.
Result<snapshot::StepRanks> readRanksOf(const Project& project, std::int64_t stepId);

// Empty for a run of one process, and for files of a version before 12 that are opened for reading.
Result<RankReport> readRanks(const Project& project, std::int64_t run);

}  // namespace stepscope::storage
