// SPDX-License-Identifier: GPL-3.0-or-later
// Reads two runs that are compared, and the start-ups of a project, into what the views show. Any thread; files are opened
// read-only and treated as hostile.
#pragma once

#include <atomic>
#include <optional>

#include "storage/error.h"
#include "storage/queries.h"
#include "storage/timing.h"
#include "views/common/run_times.h"

namespace stepscope {

RunEntry runEntry(const storage::RunRow& row);
TimeFigures timeFigures(const storage::TimeStats& times);
RunStepTimes stepTimes(const storage::TimeStats& times, const storage::StepKind& kind);

// Run A is in `path`, run B in `path` or in `request.otherProject`.
struct ReadComparison {
  RunComparison comparison;
  QString notes;      // what keeps their numbers apart, a line each; empty: nothing
  bool alike = true;  // their times of instructions may be set against each other
};
// `stop`: as Project::openReadOnly() takes it.
storage::Result<ReadComparison> readComparison(const QString& path, const CompareRequest& request,
                                               std::optional<std::int64_t> liveBefore = {},
                                               const std::atomic<bool>* stop = nullptr);

// Of the newest run of the project, which is recorded now, only steps below `liveBefore` stand.
storage::Result<storage::Standing> standingOf(const storage::Project& project, std::optional<std::int64_t> liveBefore);

// The newest build of the run last, before it those of the same model and kind (first builds, or rebuilds after a toggle).
// Run 0 is the newest.
storage::Result<StartupHistory> readStartupHistory(const QString& path, std::int64_t run);

}  // namespace stepscope
