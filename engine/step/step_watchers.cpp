#include "engine/step/step_watchers.h"

#include <utility>

namespace stepscope {

const NotePlan& StepWatchers::notePlan(const Executor& executor) {
  if (!notes_) {
    notes_ = planNotes(executor, step_.trained, step_.optimizer.accumulated, step_.loss);
    notes_->unscale = step_.optimizer.lossUnscale;
  }
  return *notes_;
}

void StepWatchers::beginNotes(const Executor& executor, const Batch& batch) {
  const std::int64_t number = context_.state.counters.step;
  context_.notes.begin(executor, context_.notes.due(number) ? &notePlan(executor) : nullptr, batch, step_.loss, number);
}

void StepWatchers::beginFlight(const Executor& executor) {
  if (!context_.flight.on()) return;
  const bool seen = executor.device().onHost() && !step_.request.forwardOnly;
  if (seen && !flight_) flight_ = context_.flight.planFor(executor, notePlan(executor));
  context_.flight.begin(executor, seen ? &*flight_ : nullptr, context_.state.counters.step);
}

void StepWatchers::tellProgress(const Executor& executor, int done) {
  const auto& progress = context_.log.observer().progress;
  if (!progress || !executor.device().facts().immediate) return;
  const std::int64_t now = monotonicNs();
  if (now - told_ < kTellNs) return;
  told_ = now;
  progress("instruction", done, static_cast<std::int64_t>(executor.plan().instructions.size()));
}

NvtxRanges* StepWatchers::ranges(const Graph& graph, const ExecutionPlan& plan) {
  if (!step_.request.options.nvtx) {
    ranges_.reset();
    context_.nvtxRun.reset();
    return nullptr;
  }
  if (ranges_) return ranges_.get();
  const auto tool = nvtx::Tool::load();
  if (!tool) {
    if (!std::exchange(context_.nvtxTold, true)) context_.log.warn("nvtx", "record.nvtx is on: " + tool.error().message);
    return nullptr;
  }
  if (!context_.nvtxRun) context_.nvtxRun = std::make_unique<NvtxRun>(**tool, "run");
  ranges_ = std::make_unique<NvtxRanges>(**tool, graph, plan);
  return ranges_.get();
}

}  // namespace stepscope
