// What recompute could give for the variant that runs, and what the plans of this session gave.
#include <fmt/format.h>

#include <algorithm>

#include "engine/profile/roofline.h"
#include "engine/train/session.h"

namespace stepscope {

NodeTimes Session::nodeTimes() const {
  NodeTimes times;
  const ExecutionPlan& plan = variant_->executor->plan();
  std::vector<double> ns = variant_->times.medians();
  times.measured = !ns.empty();
  if (times.measured) {
    times.basis = fmt::format("medians of the newest {} steps, by instruction",
                              std::min<std::int64_t>(variant_->times.steps(), StepTimes::kKept));
  } else {
    const cpu::MachinePeak& peak = cpu::machinePeak(std::max(1, variant_->planOptions.threads));
    for (const InstructionRoof& roof : rooflineOf(plan, peak)) ns.push_back(roof.ns);
    times.basis = fmt::format("no step has run: estimated from flops and bytes ({})", peakText(peak));
  }
  // What runs twice now is known best by its second run; a node that only runs again has no first.
  std::unordered_map<std::int32_t, double> again;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Node& node = variant_->graph.node(plan.instructions[i].node);
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

Result<snapshot::RecomputeReport> Session::recomputeReport(const std::optional<RecomputeQuestion>& question) {
  if (!variant_) return invalid("recompute: nothing was built; build first");
  if (forwardOnly_) return invalid("recompute: the model was built without a backward phase; nothing is kept for one");
  if (!variant_->analysis) {
    const auto before = [this](std::int64_t done, std::int64_t total) -> Status {
      if (cancelled_.exchange(false)) return fail(ErrorCode::kCancelled, "recompute: cancelled");
      if (observer_.progress && total > 0) observer_.progress("judging what may be computed again", done, total);
      return {};
    };
    variant_->analysis =
        std::make_unique<RecomputeAnalysis>(*variant_->specialised, *variant_->inference, variant_->planOptions,
                                            options_.recomputePlan, options_.recomputeBudget, before);
  }
  SS_TRY(variant_->analysis->prepare());
  const NodeTimes times = nodeTimes();
  snapshot::RecomputeReport report = variant_->analysis->report(times);
  report.set_signature(variant_->signature);
  if (question) {
    SS_ASSIGN(*report.mutable_what_if(), variant_->analysis->whatIf(question->plan, question->budget, times));
  }
  for (const PlanRun& run : planRuns_) {
    if (run.signature != variant_->signature || run.settings != builtSettings_) continue;
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
    row.set_present(sameChoice(run) && run.build == build_);
  }
  return report;
}

bool Session::sameChoice(const PlanRun& run) const {
  return run.signature == variant_->signature && run.plan == builtPlan_ && run.budget == options_.recomputeBudget &&
         run.settings == builtSettings_;
}

void Session::rememberTimes() {
  const std::size_t instructions = variant_->executor->plan().instructions.size();
  variant_->times.add(lastSpans_, instructions);
  if (forwardOnly_ || variant_->times.steps() == 0) return;
  auto run = std::find_if(planRuns_.begin(), planRuns_.end(), [this](const PlanRun& r) { return sameChoice(r); });
  // The same choice again, after another one, is measured anew.
  if (run == planRuns_.end() || run->build != build_) {
    if (run != planRuns_.end()) planRuns_.erase(run);
    if (planRuns_.size() >= kMostPlanRuns) planRuns_.erase(planRuns_.begin());
    planRuns_.push_back(
        {variant_->signature, builtSettings_, builtPlan_, options_.recomputeBudget, variant_->livePeak, 0, build_, {}});
    run = planRuns_.end() - 1;
  }
  run->times.add(lastSpans_, instructions);
  run->arenaBytes = touched_;
}

}  // namespace stepscope
