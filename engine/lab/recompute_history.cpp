#include "engine/lab/recompute_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "engine/build/known_roofs.h"
#include "engine/profile/roofline.h"

namespace stepscope {

namespace {

std::vector<NodeOfInstruction> nodesOf(const Stepper& stepper) {
  std::vector<NodeOfInstruction> nodes;
  for (const Instruction& instruction : stepper.plan().instructions) {
    const Node& node = stepper.graph().node(instruction.node);
    const bool again = node.phase == Phase::kRecompute;
    nodes.push_back({again ? node.provenance.forward.index : node.id.index, again});
  }
  return nodes;
}

// What runs twice is known best by its second run; a node that only runs again has no first.
NodeTimes byNode(const std::vector<double>& ns, const std::vector<NodeOfInstruction>& nodes) {
  NodeTimes times;
  std::unordered_map<std::int32_t, double> again;
  for (std::size_t i = 0; i < std::min(ns.size(), nodes.size()); ++i) {
    if (nodes[i].again) {
      again[nodes[i].node] = ns[i];
    } else {
      times.ns[nodes[i].node] = ns[i];
      times.plainStep += ns[i];
    }
  }
  for (const auto& [node, time] : again) {
    if (!times.ns.contains(node)) times.plainStep += time;
    times.ns[node] = time;
  }
  return times;
}

std::int64_t keptSteps(const StepTimes& times) { return std::min<std::int64_t>(times.steps(), StepTimes::kKept); }

}  // namespace

// The first step under a plan is cold: what another choice took says more about a node than that.
NodeTimes RecomputeHistory::nodeTimes(const Stepper& stepper) const {
  const StepTimes& own = stepper.times();
  const Run* warm = nullptr;
  for (const Run& run : runs_)
    if (isAlike(run, stepper) && run.times.steps() > 0 && !run.times.cold() && (!warm || run.newest > warm->newest))
      warm = &run;
  NodeTimes times;
  if (own.steps() > 0 && (!own.cold() || !warm)) {
    times = byNode(own.medians(), nodesOf(stepper));
    times.measured = true;
    times.cold = own.cold();
    times.steps = keptSteps(own);
    times.basis = times.cold ? std::string("1 step, cold: the first one under this plan, which takes longer than later ones")
                             : fmt::format("medians of the newest {} steps, by instruction", times.steps);
  } else if (warm) {
    times = byNode(warm->times.medians(), warm->nodes);
    times.measured = true;
    times.steps = keptSteps(warm->times);
    times.basis = fmt::format(
        "medians of {} steps under another choice of recompute, by instruction; under this one no step is warm yet",
        times.steps);
  } else {
    const cpu::MachinePeak& peak = roofsOf(stepper.step().request.options, stepper.variant().planOptions.threads, nullptr);
    std::vector<double> ns;
    for (const InstructionRoof& roof : rooflineOf(stepper.plan(), peak)) ns.push_back(roof.ns);
    times = byNode(ns, nodesOf(stepper));
    times.basis = fmt::format("no step has run: estimated from flops and bytes ({})", peakText(peak));
  }
  return times;
}

bool RecomputeHistory::isAlike(const Run& run, const Stepper& stepper) {
  return run.signature == stepper.plan().signature && run.settings == stepper.step().settings;
}

bool RecomputeHistory::sameChoice(const Run& run, const Stepper& stepper) {
  const SymbolicStep& step = stepper.step();
  return isAlike(run, stepper) && run.plan == step.recomputePlan && run.budget == step.request.options.recomputeBudget;
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
                     0,
                     stepper.variant().step,
                     nodesOf(stepper),
                     {}});
    run = runs_.end() - 1;
  }
  run->times.add(stepper.lastSpans(), stepper.plan().instructions.size());
  run->arenaBytes = stepper.touchedBytes();
  run->newest =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void RecomputeHistory::addRuns(const Stepper& stepper, snapshot::RecomputeReport& report) const {
  for (const Run& run : runs_) {
    if (!isAlike(run, stepper)) continue;
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
    row.set_cold(run.times.cold());
    row.set_newest(run.newest);
    row.set_present(sameChoice(run, stepper) && sameBuild(run, stepper));
  }
}

}  // namespace stepscope
