#include "engine/recompute/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include "engine/recompute/apply.h"
#include "engine/recompute/pattern_meaning.h"

namespace stepscope {
namespace {

// An order of candidates, not a time: what a byte saved costs where a flop costs an eighth of a byte moved.
double costPerByte(const RecomputeCandidate& candidate) {
  return (static_cast<double>(candidate.traffic) + candidate.flops / 8) /
         static_cast<double>(std::max<std::int64_t>(1, candidate.bytes));
}

}  // namespace

// What a budget may add to requests. What leaves a block is kept, or making one block again would need the one before; so
// blocks come with the single stashes outside them.
struct RecomputeStudy::Steps {
  RecomputeChoice requested, stashes, blocks;

  RecomputeChoice some(std::size_t count) const {
    RecomputeChoice choice = requested;
    choice.insert(choice.end(), stashes.begin(), stashes.begin() + static_cast<std::ptrdiff_t>(count));
    return choice;
  }
  RecomputeChoice someBlocks(std::size_t count) const {
    RecomputeChoice choice = requested;
    const auto end = blocks.begin() + static_cast<std::ptrdiff_t>(count);
    choice.insert(choice.end(), blocks.begin(), end);
    std::unordered_set<std::string_view> modules;
    for (auto block = blocks.begin(); block != end; ++block) modules.insert((*block)->module);
    for (const RecomputeCandidate* stash : stashes)
      if (!modules.contains(stash->module)) choice.push_back(stash);
    return choice;
  }
};

RecomputeStudy::RecomputeStudy(const Graph& graph, const Inference& inference, const PlanOptions& plan, Before before)
    : graph_(graph),
      inference_(inference),
      plan_(plan),
      before_(std::move(before)),
      report_(findStashes(graph, plan.pinned, inference.ops())) {
  for (const RecomputeCandidate& candidate : report_.stashes) byCost_.push_back(&candidate);
  std::stable_sort(byCost_.begin(), byCost_.end(),
                   [](const auto* a, const auto* b) { return costPerByte(*a) < costPerByte(*b); });
}

std::int64_t RecomputeStudy::occurrences(const std::string& pattern) const {
  return static_cast<std::int64_t>(requested({RecomputeRequest{pattern}}).size());
}

RecomputeChoice RecomputeStudy::all() const {
  RecomputeChoice every;
  for (const auto* list : {&report_.stashes, &report_.costly, &report_.blocks})
    for (const RecomputeCandidate& candidate : *list) every.push_back(&candidate);
  return every;
}

std::vector<std::string> RecomputeStudy::meant(const std::string& pattern) const {
  std::set<std::string> found;
  for (const RecomputeCandidate* candidate : all()) {
    if (candidate->pattern == pattern) return {pattern};
    if (meansPattern(pattern, candidate->pattern)) found.insert(candidate->pattern);
  }
  return {found.begin(), found.end()};
}

RecomputeChoice RecomputeStudy::requested(const std::vector<RecomputeRequest>& requests) const {
  RecomputeChoice chosen;
  for (const RecomputeRequest& request : requests) {
    if (!request.apply) continue;
    const std::vector<std::string> patterns = meant(request.pattern);
    std::int64_t taken = 0;
    for (const RecomputeCandidate* candidate : all()) {
      const bool wanted = std::find(patterns.begin(), patterns.end(), candidate->pattern) != patterns.end();
      if (!wanted || (request.count >= 0 && taken >= request.count) ||
          std::find(chosen.begin(), chosen.end(), candidate) != chosen.end())
        continue;
      ++taken;
      chosen.push_back(candidate);
    }
  }
  return chosen;
}

Result<RecomputeEffect> RecomputeStudy::evaluate(const RecomputeChoice& choice, const Complete& complete) const {
  if (before_) SS_TRY(before_());
  Graph trial = graph_;
  Inference facts = inference_;
  facts.rebind(trial);
  applyRecompute(trial, choice);
  SS_ASSIGN(ExecutionPlan plan, makePlan(trial, facts, plan_));
  measureLiveBytes(plan);
  RecomputeEffect effect;
  effect.peak = plan.lowerBoundBytes;
  if (complete) {
    SS_TRY(complete(plan, trial));
    effect.arena = plan.arenaBytes + plan.hostArenaBytes;
  }
  for (const NodeId id : trial.order())
    if (trial.node(id).phase == Phase::kRecompute) effect.repeated.push_back(trial.node(id).provenance.forward);
  return effect;
}

RecomputeStudy::Steps RecomputeStudy::stepsAfter(const std::vector<RecomputeRequest>& requests,
                                                 const RecomputeChoice& requested) const {
  Steps steps;
  steps.requested = requested;
  const std::unordered_set<const RecomputeCandidate*> taken(requested.begin(), requested.end());
  const auto free = [&](const RecomputeCandidate& candidate) {
    return !taken.contains(&candidate) && std::none_of(requests.begin(), requests.end(), [&](const auto& r) {
      return !r.apply && meansPattern(r.pattern, candidate.pattern);
    });
  };
  for (const RecomputeCandidate* candidate : byCost_)
    if (free(*candidate)) steps.stashes.push_back(candidate);
  for (const RecomputeCandidate& candidate : report_.blocks)
    if (free(candidate)) steps.blocks.push_back(&candidate);
  return steps;
}

// The smallest count of 0 … all whose choice `make(count)` brings the peak below the budget, or all. Peaks fall with the
// count nearly always; where they do not, more than the fewest are taken.
template <class Make>
Result<RecomputeChoice> RecomputeStudy::fewest(std::size_t all, std::int64_t budget, const Make& make) const {
  std::size_t low = 0, high = all;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    SS_ASSIGN(const RecomputeEffect effect, evaluate(make(middle)));
    if (effect.peak <= budget)
      high = middle;
    else
      low = middle + 1;
  }
  return make(high);
}

Result<RecomputeChoice> RecomputeStudy::choose(const std::vector<RecomputeRequest>& requests, std::int64_t budget) const {
  RecomputeChoice best = requested(requests);
  if (budget <= 0) return best;
  SS_ASSIGN(const RecomputeEffect asked, evaluate(best));
  std::int64_t lowest = asked.peak;
  if (lowest <= budget) return best;
  const Steps steps = stepsAfter(requests, best);
  for (const bool whole : {false, true}) {
    if (whole && steps.blocks.empty()) break;
    SS_ASSIGN(RecomputeChoice choice,
              whole ? fewest(steps.blocks.size(), budget, [&](std::size_t n) { return steps.someBlocks(n); })
                    : fewest(steps.stashes.size(), budget, [&](std::size_t n) { return steps.some(n); }));
    SS_ASSIGN(const RecomputeEffect effect, evaluate(choice));
    if (effect.peak < lowest) {
      lowest = effect.peak;
      best = std::move(choice);
    }
    if (lowest <= budget) break;
  }
  return best;
}

std::vector<RecomputeChoice> RecomputeStudy::ladder(std::size_t stashes, std::size_t blocks) const {
  const Steps steps = stepsAfter({}, {});
  std::vector<RecomputeChoice> choices{{}};
  const auto climb = [&](std::size_t all, std::size_t most, const auto& make) {
    for (std::size_t i = 1; i <= std::min(all, most); ++i) choices.push_back(make(all * i / std::min(all, most)));
  };
  climb(steps.stashes.size(), stashes, [&](std::size_t n) { return steps.some(n); });
  climb(steps.blocks.size(), blocks, [&](std::size_t n) { return steps.someBlocks(n); });
  return choices;
}

std::vector<std::size_t> RecomputeStudy::places(const RecomputeChoice& choice) const {
  const RecomputeChoice every = all();
  std::vector<std::size_t> found;
  for (const RecomputeCandidate* candidate : choice)
    found.push_back(static_cast<std::size_t>(std::ranges::find(every, candidate) - every.begin()));
  return found;
}

std::optional<RecomputeChoice> RecomputeStudy::choiceAt(const std::vector<std::size_t>& places) const {
  const RecomputeChoice every = all();
  RecomputeChoice choice;
  for (const std::size_t place : places) {
    if (place >= every.size()) return std::nullopt;
    choice.push_back(every[place]);
  }
  return choice;
}

std::string RecomputeStudy::planOf(const RecomputeChoice& choice, bool* exact) const {
  std::map<std::string, std::int64_t> counts;
  for (const RecomputeCandidate* candidate : choice) ++counts[candidate->pattern];
  std::string text;
  std::vector<RecomputeRequest> requests;
  for (const auto& [pattern, count] : counts) {
    requests.push_back({pattern, true, count == occurrences(pattern) ? -1 : count});
    text += fmt::format("{}{}:1:{}", text.empty() ? "" : ",", pattern, requests.back().count);
  }
  if (exact) {
    const RecomputeChoice named = requested(requests);
    const std::unordered_set<const RecomputeCandidate*> a(choice.begin(), choice.end()), b(named.begin(), named.end());
    *exact = a == b;
  }
  return text;
}

}  // namespace stepscope
