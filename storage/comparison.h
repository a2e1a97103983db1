// Two recorded runs side by side: where their numbers part, and what differs in options, time and memory.
//
// Times are wall-clock nanoseconds. What agrees and in which order numbers are compared: divergence.h.
// Errors: kNotFound names the run that is not there and the runs there are; kInvalidArgument for a tolerance that is
// negative or not finite; database errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/divergence.h"
#include "storage/error.h"
#include "storage/project.h"
#include "storage/queries.h"
#include "storage/timing.h"

namespace stepscope::storage {

struct OptionDifference {
  std::string name;
  std::optional<std::string> a, b;  // empty: the run has no such option
};

// The same thing in both runs; empty where a run does not have it.
struct TimeDifference {
  std::string name, phase;     // phase is empty for the phases themselves
  std::optional<double> a, b;  // ns: of the build; median of a step's phase; medians of an operator's instructions together
  std::int64_t countA = 0,
               countB = 0;  // build phases: items; phases of the step: steps measured; operators: instructions of the plan
  TimeStats timeA, timeB;  // n = 0 where it was not measured: of the newest build for its phases, of one step for the phases
                           // of the step, of one execution for operators
  bool alike = true;  // false: one of both was measured in warm-up alone, the other was not, so they are not set against
                      // each other
  double difference() const { return alike ? b.value_or(0) - a.value_or(0) : 0; }
};

struct MemoryDifference {
  std::string name;                  // "planned", "measured peak", "arena", "lower bound", "persistent"
  std::optional<std::int64_t> a, b;  // bytes
};

struct RunComparison {
  RunRow a, b;
  std::vector<OptionDifference> options;  // only those that differ, settings of the run (model, seed …) first
  std::string threads;                    // why equal runs may differ in bits: other numbers of threads; empty: they may not
  std::string warmUp;  // which of both has only times of warm-up, while the other has better ones; empty: none
  SharedSteps steps;
  TimeStats stepA, stepB;                   // wall time of the judged steps (judged_steps.h)
  StepKind kindA, kindB;                    // what those are
  std::vector<TimeDifference> buildPhases;  // depth 0 of the newest build, in order
  std::vector<TimeDifference> stepPhases;   // forward, backward, recompute, optimizer
  std::vector<TimeDifference> ops;          // largest absolute difference first
  std::vector<MemoryDifference> memory;
};

// Runs of one project, of which steps count that stand; their times are those of every execution. Error: no such run.
Result<RunComparison> compareRuns(const Project& project, std::int64_t runA, std::int64_t runB,
                                  const Tolerance& tolerance = {});
// Runs of two projects; `live` is of the first.
Result<RunComparison> compareRuns(const Project& projectA, std::int64_t runA, const Project& projectB, std::int64_t runB,
                                  const Tolerance& tolerance = {}, const Standing& live = {});

}  // namespace stepscope::storage
