// What the steps of a session took under each choice of recompute, for the report that compares choices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/lab/recompute_analysis.h"
#include "engine/profile/step_times.h"
#include "engine/step/stepper.h"

namespace stepscope {

// The node that an instruction runs; `again`: a second time, under its phase recompute.
struct NodeOfInstruction {
  std::int32_t node = -1;
  bool again = false;
};

class RecomputeHistory {
 public:
  // After a committed step.
  void add(const Stepper& stepper);
  // Nanoseconds of each node: medians of warm steps, those of the plan that runs before those of another choice. Where there
  // are none, of the one cold step; else what the machine can reach.
  NodeTimes nodeTimes(const Stepper& stepper) const;
  // A row for each choice that ran with the settings and the signature of `stepper`.
  void addRuns(const Stepper& stepper, snapshot::RecomputeReport& report) const;

 private:
  // The steps that ran under one choice. `settings`: all other options.
  struct Run {
    std::string signature, settings, plan;
    std::int64_t budget = 0, peakBytes = 0, arenaBytes = 0, newest = 0;
    std::weak_ptr<const SymbolicStep> step;  // of the newest of them
    std::vector<NodeOfInstruction> nodes;
    StepTimes times;
  };
  static constexpr std::size_t kMost = 64;
  static bool isAlike(const Run& run, const Stepper& stepper);  // but for what runs again
  static bool sameChoice(const Run& run, const Stepper& stepper);
  static bool sameBuild(const Run& run, const Stepper& stepper) { return run.step.lock() == stepper.variant().step; }

  std::vector<Run> runs_;  // oldest first
};

}  // namespace stepscope
