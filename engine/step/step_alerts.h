// What is worth telling of a plan and its steps, as alerts.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/build/build_log.h"
#include "engine/exec/executor.h"
#include "engine/step/step_context.h"

namespace stepscope {

// The nodes whose results differ from run to run, and why: once for a plan, before its first step.
void tellWhatHasNoOrder(const Executor& executor, BuildLog& log);

// The instructions that ran longer than `longMs` milliseconds: cancelling waits for the one that runs.
void nameLongInstructions(const Executor& executor, const std::vector<Span>& spans, std::int64_t longMs, BuildLog& log);

// How steps come to a device that has graphs, when that changes. Nothing for other devices.
void tellOfIssue(const Executor& executor, BuildLog& log);

// An update whose learning rate is 0 because the schedule has ended: training that does nothing any more says so, once for
// a build. Before the update is counted.
void tellWhereScheduleEnded(const TrainOptions& options, StepContext& context);

}  // namespace stepscope
