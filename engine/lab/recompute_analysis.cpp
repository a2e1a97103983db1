#include "engine/lab/recompute_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/ir/graph.h"
#include "engine/snapshot/utf8.h"

namespace stepscope {
namespace {

constexpr std::size_t kStashSteps = 20, kBlockSteps = 12;  // points of the curve
constexpr std::size_t kMostShapes = 4;

std::string typeText(const ValueType& type) {
  const auto dims = type.shape ? knownDims(*type.shape) : std::nullopt;
  return fmt::format("{}{}", dtypeName(type.dtype), dims ? dimsText(*dims) : std::string());
}

Inference bound(const Inference& inference, Graph& graph) {
  Inference copy = inference;
  copy.rebind(graph);
  return copy;
}

}  // namespace

RecomputeAnalysis::RecomputeAnalysis(const Graph& graph, const Inference& inference, const PlanOptions& plan,
                                     std::vector<RecomputeRequest> presentRequests, std::int64_t presentBudget,
                                     Before before, RecomputeStudy::Complete complete)
    : graph_(graph),
      inference_(bound(inference, graph_)),
      presentRequests_(std::move(presentRequests)),
      presentBudget_(presentBudget),
      before_(std::move(before)),
      complete_(std::move(complete)),
      study_(graph_, inference_, plan, [this] {
        return before_ ? before_(std::min(done_++, std::max<std::int64_t>(0, total_ - 1)), total_) : Status{};
      }) {}

Status RecomputeAnalysis::prepare() {
  if (prepared_) return {};
  patterns_.clear();
  curve_.clear();
  std::vector<std::string> names;
  for (const auto* list : {&study_.report().stashes, &study_.report().blocks})
    for (const RecomputeCandidate& candidate : *list)
      if (std::find(names.begin(), names.end(), candidate.pattern) == names.end()) names.push_back(candidate.pattern);
  const auto ladder = study_.ladder(kStashSteps, kBlockSteps);
  done_ = 0;
  total_ = static_cast<std::int64_t>(names.size() + ladder.size() + 1);
  for (const RecomputeChoice& choice : ladder) {
    SS_ASSIGN(RecomputeEffect effect, study_.evaluate(choice, complete_));
    // A budget takes the first choice that is low enough, so one that is no lower than those before it is never taken.
    if (curve_.empty() || effect.peak < curve_.back().effect.peak) curve_.push_back({{}, choice, std::move(effect)});
  }
  plainPeak_ = curve_.front().effect.peak;
  plainArena_ = curve_.front().effect.arena;
  for (const std::string& name : names) {
    RecomputeChoice choice = study_.requested({{name}});
    SS_ASSIGN(RecomputeEffect effect, study_.evaluate(choice, complete_));
    patterns_.push_back({name, std::move(choice), std::move(effect)});
  }
  SS_ASSIGN(present_.choice, study_.choose(presentRequests_, presentBudget_));
  SS_ASSIGN(present_.effect, study_.evaluate(present_.choice, complete_));
  std::stable_sort(patterns_.begin(), patterns_.end(), [](const Judged& a, const Judged& b) {
    return a.effect.arena != b.effect.arena ? a.effect.arena < b.effect.arena : a.effect.peak < b.effect.peak;
  });
  prepared_ = true;
  return {};
}

snapshot::RecomputePattern RecomputeAnalysis::describe(const Judged& judged, const NodeTimes& times) const {
  snapshot::RecomputePattern row;
  row.set_pattern(toUtf8(judged.pattern));
  row.set_occurrences(static_cast<int>(judged.choice.size()));
  row.set_saved_bytes(plainPeak_ - judged.effect.peak);
  row.set_saved_arena_bytes(plainArena_ - judged.effect.arena);
  row.set_nodes(static_cast<int>(judged.effect.repeated.size()));
  const std::set<const RecomputeCandidate*> applied(present_.choice.begin(), present_.choice.end());
  std::map<std::string, int> shapes;
  for (const RecomputeCandidate* candidate : judged.choice) {
    row.set_applied(row.applied() + (applied.contains(candidate) ? 1 : 0));
    row.set_stash_bytes(row.stash_bytes() + candidate->bytes);
    row.set_flops(row.flops() + candidate->flops);
    row.set_traffic(row.traffic() + candidate->traffic);
    row.add_makers(graph_.value(candidate->dropped.front()).producer.index);
    // Of a single stash the other values are views of its memory.
    const std::size_t count = candidate->pattern == "block" ? candidate->dropped.size() : 1;
    for (std::size_t i = 0; i < count; ++i) ++shapes[typeText(graph_.value(candidate->dropped[i]).type)];
  }
  std::vector<std::pair<std::string, int>> sorted(shapes.begin(), shapes.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < sorted.size() && i < kMostShapes; ++i)
    row.add_shapes(sorted[i].second == 1 ? sorted[i].first : fmt::format("{} × {}", sorted[i].first, sorted[i].second));
  if (sorted.size() > kMostShapes) row.add_shapes(fmt::format("{} more", sorted.size() - kMostShapes));
  for (const NodeId id : judged.effect.repeated)
    if (const auto it = times.ns.find(id.index); it != times.ns.end()) {
      row.set_cost_ns(row.cost_ns() + it->second);
      row.set_measured_nodes(row.measured_nodes() + (times.measured ? 1 : 0));
    }
  return row;
}

snapshot::RecomputePoint RecomputeAnalysis::describe(const RecomputeChoice& choice, const RecomputeEffect& effect,
                                                     const NodeTimes& times) const {
  snapshot::RecomputePoint point;
  point.set_peak_bytes(effect.peak);
  point.set_arena_bytes(effect.arena);
  point.set_nodes(static_cast<int>(effect.repeated.size()));
  for (const NodeId id : effect.repeated)
    if (const auto it = times.ns.find(id.index); it != times.ns.end()) point.set_extra_ns(point.extra_ns() + it->second);
  point.set_step_ns(times.plainStep + point.extra_ns());
  bool exact = false;
  point.set_plan(toUtf8(study_.planOf(choice, &exact)));
  point.set_exact(exact);
  return point;
}

snapshot::RecomputeReport RecomputeAnalysis::report(const NodeTimes& times) const {
  snapshot::RecomputeReport report;
  report.set_plain_peak_bytes(plainPeak_);
  report.set_present_peak_bytes(present_.effect.peak);
  report.set_plain_step_ns(times.plainStep);
  report.set_plain_arena_bytes(plainArena_);
  report.set_present_arena_bytes(present_.effect.arena);
  report.set_measured(times.measured);
  report.set_timed_steps(times.steps);
  report.set_cold(times.cold);
  report.set_basis(toUtf8(times.basis));
  for (const Judged& judged : patterns_) *report.add_patterns() = describe(judged, times);
  for (const Judged& judged : curve_) *report.add_curve() = describe(judged.choice, judged.effect, times);
  std::vector<const RefusedStash*> refused;
  for (const RefusedStash& stash : study_.report().refused) refused.push_back(&stash);
  std::stable_sort(refused.begin(), refused.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  for (const RefusedStash* stash : refused) {
    auto& row = *report.add_refused();
    row.set_node(stash->node.index);
    row.set_bytes(stash->bytes);
    row.set_reason(toUtf8(stash->reason));
  }
  return report;
}

Result<snapshot::RecomputePoint> RecomputeAnalysis::whatIf(const std::vector<RecomputeRequest>& requests,
                                                           std::int64_t budget, const NodeTimes& times) {
  done_ = 0;
  total_ = 0;
  for (const RecomputeRequest& request : requests)
    if (request.apply && study_.occurrences(request.pattern) == 0)
      return invalidOption("recompute.plan", fmt::format("pattern '{}' is not in this graph; expected one of the candidates",
                                                         request.pattern));
  SS_ASSIGN(const RecomputeChoice choice, study_.choose(requests, budget));
  SS_ASSIGN(const RecomputeEffect effect, study_.evaluate(choice, complete_));
  return describe(choice, effect, times);
}

}  // namespace stepscope
