// Who looks at the steps of one plan while they run: the notes of a record, the flight recorder, ranges for NVIDIA's tools,
// and what the device recorded of itself. What each needs to know of the plan is made when it is first needed.
#pragma once

#include <memory>
#include <optional>

#include "engine/build/builder.h"
#include "engine/exec/executor.h"
#include "engine/step/step_context.h"

namespace stepscope {

class StepWatchers {
 public:
  // Both must outlive this.
  StepWatchers(StepContext& context, const SymbolicStep& step) : context_(context), step_(step) {}

  void beginNotes(const Executor& executor, const Batch& batch);      // at instruction 0, when the batch is fed
  void beginFlight(const Executor& executor);                         // the same, of a step at full speed
  NvtxRanges* ranges(const Graph& graph, const ExecutionPlan& plan);  // null: nobody wants them

  // To who watches the session: at most every kTellNs, of a device that has come as far as it was told.
  static constexpr std::int64_t kTellNs = 200'000'000;
  void beginProgress() { told_ = monotonicNs(); }  // some instructions begin to run
  void tellProgress(const Executor& executor, int done);

  Activity activity;  // of the step that runs or stands, or ran last, as far as it was recorded

 private:
  const NotePlan& notePlan(const Executor& executor);

  StepContext& context_;
  const SymbolicStep& step_;
  std::optional<NotePlan> notes_;
  std::optional<FlightPlan> flight_;
  std::unique_ptr<NvtxRanges> ranges_;
  std::int64_t told_ = 0;
};

}  // namespace stepscope
