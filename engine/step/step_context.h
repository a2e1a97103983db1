// What outlives a plan: state, log, recording, and what a person asked the stepper to watch. Owned by the session; every
// stepper of it works on the same one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/build/build_log.h"
#include "engine/build/rows_choice.h"
#include "engine/comm/ranks.h"
#include "engine/profile/nvtx_ranges.h"
#include "engine/profile/processor_meter.h"
#include "engine/snapshot/worker.pb.h"
#include "engine/state/state.h"
#include "engine/step/flight_recorder.h"
#include "engine/step/numbers.h"
#include "engine/step/step_notes.h"
#include "engine/step/watched_values.h"

namespace stepscope {

struct StepContext {
  explicit StepContext(Observer observer) : log(std::move(observer)) {}

  BuildLog log;
  State state;
  StepNotes notes;                      // what the steps of a run note, and how often
  std::unique_ptr<NvtxRun> nvtxRun;     // null: nobody asked for ranges (option record.nvtx), or no tool takes them
  bool nvtxTold = false;                // why there is none
  ProcessorMeter processor;             // of the step that runs
  std::atomic<bool> cancelled = false;  // set by another thread, taken back by what it ends
  std::vector<snapshot::Breakpoint> breakpoints;
  bool conditionsStop = false;  // full speed too stops at conditions on values (breakpoints with a predicate)
  FlightRecorder flight;
  WatchedValues watched;
  NumberWatch numbers;     // of the step that runs or comes next
  RowsChoices rows;        // decided for the batch of the step that runs or comes next
  Ranks* ranks = nullptr;  // null: the process trains alone. Lent
  // Of parameters without a rate of their own, in the place of the option `lr` that the plans were built with.
  std::optional<double> learningRate;
  bool scheduleEndTold = false;  // of the newest build
  bool resumed = false;          // the state came from a file that a run wrote
  std::int64_t replayed = 0;     // instructions that were run again to go back
  // Counts what makes computed values those of another place: a batch that is fed, a state that is put back. What a stepper
  // computed is of the present place only while it caused the newest one.
  std::int64_t places = 0;
};

}  // namespace stepscope
