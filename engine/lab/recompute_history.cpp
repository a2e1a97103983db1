#include "engine/lab/recompute_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "engine/build/known_roofs.h"
#include "engine/profile/roofline.h"

namespace stepscope {

NodeTimes nodeTimes(const Stepper& stepper) {
  NodeTimes times;
  const ExecutionPlan& plan = stepper.plan();
  std::vector<double> ns = stepper.times().medians();
  times.measured = !ns.empty();
  if (times.measured) {
    times.basis = fmt::format("medians of the newest {} steps, by instruction",
                              std::min<std::int64_t>(stepper.times().steps(), StepTimes::kKept));
  } else {
    const cpu::MachinePeak& peak = roofsOf(stepper.step().request.options, stepper.variant().planOptions.threads, nullptr);
    for (const InstructionRoof& roof : rooflineOf(plan, peak)) ns.push_back(roof.ns);
    times.basis = fmt::format("no step has run: estimated from flops and bytes ({})", peakText(peak));
  }
  // What runs twice now is known best by its second run; a node that only runs again has no first.
  std::unordered_map<std::int32_t, double> again;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Node& node = stepper.graph().node(plan.instructions[i].node);
    if (node.phase == Phase::kRecompute) {
      again[node.provenance.forward.index] = ns[i];
    } else {
      times.ns[node.id.index] = ns[i];
      times.plainStep += ns[i];
    }
  }
  for (const auto& [node, time] : again) {
    if (!times.ns.contains(node)) times.plainStep += time;
    times.ns[node] = time;
  }
  return times;
}

bool RecomputeHistory::sameChoice(const Run& run, const Stepper& stepper) {
  const SymbolicStep& step = stepper.step();
  return run.signature == stepper.plan().signature && run.plan == step.recomputePlan &&
         run.budget == step.request.options.recomputeBudget && run.settings == step.settings;
}

void RecomputeHistory::add(const Stepper& stepper) {
  const SymbolicStep& step = stepper.step();
  if (step.request.forwardOnly || stepper.times().steps() == 0) return;
  auto run = std::find_if(runs_.begin(), runs_.end(), [&](const Run& r) { return sameChoice(r, stepper); });
  // The same choice again, after another one, is measured anew.
  if (run == runs_.end() || !sameBuild(*run, stepper)) {
    if (run != runs_.end()) runs_.erase(run);
    if (runs_.size() >= kMost) runs_.erase(runs_.begin());
    runs_.push_back({stepper.plan().signature,
                     step.settings,
                     step.recomputePlan,
                     step.request.options.recomputeBudget,
                     stepper.variant().plan.lowerBoundBytes,
                     0,
                     stepper.variant().step,
                     {}});
    run = runs_.end() - 1;
  }
  run->times.add(stepper.lastSpans(), stepper.plan().instructions.size());
  run->arenaBytes = stepper.touchedBytes();
}

void RecomputeHistory::addRuns(const Stepper& stepper, snapshot::RecomputeReport& report) const {
  for (const Run& run : runs_) {
    if (run.signature != stepper.plan().signature || run.settings != stepper.step().settings) continue;
    const std::vector<double> sums = run.times.sums();
    if (sums.empty()) continue;
    auto& row = *report.add_runs();
    row.set_plan(run.plan);
    row.set_budget(run.budget);
    row.set_peak_bytes(run.peakBytes);
    row.set_arena_bytes(run.arenaBytes);
    row.set_steps(run.times.steps());
    row.set_median_ns(medianOf(sums));
    row.set_min_ns(*std::min_element(sums.begin(), sums.end()));
    row.set_max_ns(*std::max_element(sums.begin(), sums.end()));
    row.set_present(sameChoice(run, stepper) && sameBuild(run, stepper));
  }
}

}  // namespace stepscope
