// Statistics of recorded times: per operator, per instruction, per phase of the step.
//
// Of steps that stand (queries.h). Warm-up steps (the first of each plan) are left out while other steps exist; of the time
// of whole steps, also those that somebody stopped in (judged_steps.h): what their instructions took says as much as any. A
// mean never stands alone: every row carries the count, median, 95th percentile and the extremes. Very long runs are sampled
// evenly over their steps; the result says so.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/snapshot/busy_machine.h"
#include "storage/error.h"
#include "storage/judged_steps.h"
#include "storage/project.h"
#include "storage/queries.h"
#include "storage/span_codec.h"

namespace stepscope::storage {

struct TimeStats {  // nanoseconds
  std::int64_t n = 0;
  std::int64_t total = 0;
  double mean = 0;
  std::int64_t median = 0, p95 = 0, min = 0, max = 0;
};

// Nearest-rank percentiles. Sorts `times`.
TimeStats statisticsOf(std::vector<std::int64_t>& times);

// What the judged steps are, besides their wall time.
struct StepKind : ProcessorTimes {                               // sums over the steps whose processor time was measured
  std::int64_t full = 0, recorded = 0, watched = 0, walked = 0;  // steps of each speed
  std::int64_t measured = 0;                                     // whose processor time was

  void add(std::int64_t ns, std::int64_t cpuNs, std::int64_t waitNs, std::string_view speed);
  std::string speed() const;  // "full speed", "recorded", "walked"; several as "12 recorded, 3 full speed"; empty: no step
};
// Times of a and b were not taken in the same way; "A full speed, B recorded".
std::string unlikeSpeeds(const StepKind& a, const StepKind& b);  // empty where they were

struct OpTime {
  std::string op, phase, category;  // category of the first such node
  std::int64_t instructions = 0;    // in the plan
  TimeStats time;                   // of one execution
  double share = 0;                 // of the time of all instructions, 0..1
};

struct InstructionTime {
  std::int64_t plan = 0;
  int position = 0;
  std::int32_t node = -1;
  std::string op, label, phase, category, modulePath, implementation;
  std::int64_t bytesRead = 0, bytesWritten = 0;
  double flops = 0;
  bool view = false;
  TimeStats time;  // n = 0 when it was never recorded
  double share = 0;
};

struct PhaseTime {
  std::string phase;  // forward, backward, recompute, optimizer
  TimeStats time;     // per step
  double share = 0;
};

struct Timing {
  std::int64_t steps = 0;                     // recorded steps without warm-up
  std::int64_t sampledSteps = 0;              // of them, used here
  TimeStats step;                             // wall time of the judged steps
  StepKind kind;                              // what those are
  std::vector<OpTime> ops;                    // largest share first
  std::vector<InstructionTime> instructions;  // of the newest plan that was executed, in order
  std::vector<PhaseTime> phases;
};

// Wall times of the newest kMostStepTimes judged steps of the project, by runs.id; nothing of a run that has none.
inline constexpr std::int64_t kMostStepTimes = 200'000;
struct RunTime : TimeStats {
  StepKind kind;
};
Result<std::map<std::int64_t, RunTime>> readStepTimes(const Project& project);

// Times of a run by instruction, node and operator. Error: no such run.
Result<Timing> readTiming(const Project& project, std::int64_t run);
// The same for who has read its steps (readSteps).
Result<Timing> readTiming(const Project& project, std::int64_t run, std::vector<StepRow> steps);

// Spans of one row of `steps`, in order of execution; empty when none were recorded.
Result<std::vector<Span>> readSpans(const Project& project, std::int64_t stepId);

// What a device did in the step; empty where nothing was recorded of one.
Result<snapshot::DeviceWork> readDeviceWork(const Project& project, std::int64_t stepId);

}  // namespace stepscope::storage
