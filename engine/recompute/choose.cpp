#include "engine/recompute/choose.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

#include "engine/recompute/apply.h"

namespace stepscope {
namespace {

using Choice = std::vector<const RecomputeCandidate*>;

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

tl::unexpected<Error> badEntry(std::string_view entry, std::string_view found) {
  return invalid(fmt::format("option 'recompute.plan': entry '{}' has {}; expected PATTERN:1:COUNT (COUNT -1 = all), or PATTERN:0:COUNT to leave it", entry, found));
}

Result<std::int64_t> livePeak(const Graph& graph, const Inference& inference, const PlanOptions& options) {
  SS_ASSIGN(ExecutionPlan plan, makePlan(graph, inference, options));
  measureLiveBytes(plan);
  return plan.lowerBoundBytes;
}

// An order of candidates, not a time: what a byte saved costs where a flop costs an eighth of a byte moved.
double costPerByte(const RecomputeCandidate& candidate) {
  return (static_cast<double>(candidate.traffic) + candidate.flops / 8) / static_cast<double>(std::max<std::int64_t>(1, candidate.bytes));
}

class Chooser {
 public:
  Chooser(Graph& graph, Inference& inference, const RecomputeOptions& options)
      : graph_(graph), inference_(inference), options_(options), report_(findStashes(graph, options.plan.pinned)) {
    for (const RecomputeCandidate& candidate : report_.stashes) byCost_.push_back(&candidate);
    std::stable_sort(byCost_.begin(), byCost_.end(), [](const auto* a, const auto* b) { return costPerByte(*a) < costPerByte(*b); });
  }

  Result<RecomputeOutcome> run() {
    describePatterns();
    for (const RefusedStash& refused : report_.refused)
      outcome_.result.nearMisses.push_back({refused.node, fmt::format("{} bytes stay: {}", refused.bytes, refused.reason)});
    Choice chosen = requested();
    if (chosen.empty() && options_.budget == 0) return std::move(outcome_);
    SS_ASSIGN(outcome_.peakBefore, livePeak(graph_, inference_, options_.plan));
    outcome_.peakAfter = outcome_.peakBefore;
    if (options_.budget > 0) {
      SS_ASSIGN(chosen, withinBudget(std::move(chosen)));
    }
    if (!chosen.empty()) {
      outcome_.result.matches = applyRecompute(graph_, chosen);
      SS_ASSIGN(outcome_.peakAfter, livePeak(graph_, inference_, options_.plan));
      describeChoice(chosen);
    }
    outcome_.overBudget = options_.budget > 0 && outcome_.peakAfter > options_.budget;
    return std::move(outcome_);
  }

 private:
  void describePatterns() {
    struct Sum {
      std::size_t count = 0;
      std::int64_t bytes = 0, traffic = 0;
      double flops = 0;
    };
    std::map<std::string, Sum> sums;
    for (const auto* list : {&report_.stashes, &report_.blocks})
      for (const RecomputeCandidate& candidate : *list) {
        Sum& sum = sums[candidate.pattern];
        ++sum.count;
        sum.bytes += candidate.bytes;
        sum.traffic += candidate.traffic;
        sum.flops += candidate.flops;
      }
    std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
    for (const auto& [pattern, sum] : rows)
      outcome_.result.notes.push_back(fmt::format("pattern '{}': {} occurrence{}, {} bytes of stashes, {:.0f} flops and {} bytes moved to make them again", pattern, sum.count,
                                                  sum.count == 1 ? "" : "s", sum.bytes, sum.flops, sum.traffic));
  }

  Choice requested() {
    Choice chosen;
    for (const RecomputeRequest& request : options_.requests) {
      if (!request.apply) continue;
      std::int64_t taken = 0, all = 0;
      for (const auto* list : {&report_.stashes, &report_.blocks})
        for (const RecomputeCandidate& candidate : *list) {
          if (candidate.pattern != request.pattern) continue;
          ++all;
          if (request.count >= 0 && taken >= request.count) continue;
          ++taken;
          chosen.push_back(&candidate);
        }
      outcome_.result.notes.push_back(all == 0 ? fmt::format("requested '{}': no such pattern in this graph", request.pattern)
                                               : fmt::format("requested '{}': {} of {} occurrences", request.pattern, taken, all));
    }
    return chosen;
  }

  bool refused(const RecomputeCandidate& candidate) const {
    return std::any_of(options_.requests.begin(), options_.requests.end(), [&](const auto& r) { return !r.apply && r.pattern == candidate.pattern; });
  }

  Result<std::int64_t> peakWith(const Choice& choice) const {
    Graph trial = graph_;
    Inference facts = inference_;
    facts.rebind(trial);
    applyRecompute(trial, choice);
    return livePeak(trial, facts, options_.plan);
  }

  // The smallest count of 0 … all whose choice `make(count)` brings the peak below the budget, or all. Peaks fall with the count
  // nearly always; where they do not, more than the fewest are taken.
  template <class Make>
  Result<Choice> fewest(std::size_t all, const Make& make) const {
    std::size_t low = 0, high = all;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      SS_ASSIGN(const std::int64_t peak, peakWith(make(middle)));
      if (peak <= options_.budget)
        high = middle;
      else
        low = middle + 1;
    }
    return make(high);
  }

  // Single stashes as far as they are needed; where all of them are not enough, blocks from the front, with the single stashes
  // outside them: what leaves a block is kept, or making one block again would need the one before.
  Result<Choice> withinBudget(Choice requested) {
    SS_ASSIGN(std::int64_t lowest, peakWith(requested));
    if (lowest <= options_.budget) return requested;
    Choice stashes, blocks, best = requested;
    const std::set<const RecomputeCandidate*> taken(requested.begin(), requested.end());
    for (const RecomputeCandidate* candidate : byCost_)
      if (!taken.contains(candidate) && !refused(*candidate)) stashes.push_back(candidate);
    for (const RecomputeCandidate& candidate : report_.blocks)
      if (!taken.contains(&candidate) && !refused(candidate)) blocks.push_back(&candidate);
    const auto someStashes = [&](std::size_t count) {
      Choice choice = requested;
      choice.insert(choice.end(), stashes.begin(), stashes.begin() + static_cast<std::ptrdiff_t>(count));
      return choice;
    };
    const auto someBlocks = [&](std::size_t count) {
      Choice choice = requested;
      choice.insert(choice.end(), blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(count));
      for (const RecomputeCandidate* stash : stashes)
        if (std::none_of(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(count), [&](const auto* block) { return block->module == stash->module; })) choice.push_back(stash);
      return choice;
    };
    // Out of reach, the lowest of what was tried is taken.
    for (const bool whole : {false, true}) {
      if (whole && blocks.empty()) break;
      SS_ASSIGN(Choice choice, whole ? fewest(blocks.size(), someBlocks) : fewest(stashes.size(), someStashes));
      SS_ASSIGN(const std::int64_t peak, peakWith(choice));
      if (peak < lowest) {
        lowest = peak;
        best = std::move(choice);
      }
      if (lowest <= options_.budget) break;
    }
    return best;
  }

  void describeChoice(const Choice& chosen) {
    std::map<std::string, std::size_t> counts;
    for (const RecomputeCandidate* candidate : chosen) ++counts[candidate->pattern];
    std::string plan;
    for (const auto& [pattern, count] : counts) plan += fmt::format("{}{} × '{}'", plan.empty() ? "" : ", ", count, pattern);
    outcome_.result.notes.push_back(fmt::format("chosen: {}; {} nodes run again; live activations {} → {} bytes", plan, outcome_.result.matches, outcome_.peakBefore, outcome_.peakAfter));
  }

  Graph& graph_;
  Inference& inference_;
  const RecomputeOptions& options_;
  StashReport report_;
  Choice byCost_;
  RecomputeOutcome outcome_;
};

}  // namespace

Result<std::vector<RecomputeRequest>> parseRecomputePlan(std::string_view text) {
  std::vector<RecomputeRequest> requests;
  while (!trimmed(text).empty()) {
    const auto comma = text.find(',');
    const std::string_view entry = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto second = entry.rfind(':');
    const auto first = second == std::string_view::npos || second == 0 ? std::string_view::npos : entry.rfind(':', second - 1);
    if (first == std::string_view::npos) return badEntry(entry, "not three fields");
    const std::string_view pattern = trimmed(entry.substr(0, first)), kind = trimmed(entry.substr(first + 1, second - first - 1)), count = trimmed(entry.substr(second + 1));
    RecomputeRequest request{std::string(pattern)};
    if (pattern.empty()) return badEntry(entry, "no pattern");
    if (kind != "0" && kind != "1") return badEntry(entry, fmt::format("kind '{}'", kind));
    request.apply = kind == "1";
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), request.count);
    if (error != std::errc() || end != count.data() + count.size() || request.count < -1) return badEntry(entry, fmt::format("count '{}'", count));
    std::erase_if(requests, [&](const RecomputeRequest& other) { return other.pattern == request.pattern; });
    requests.push_back(std::move(request));
  }
  return requests;
}

Result<RecomputeOutcome> recompute(Graph& graph, Inference& inference, const RecomputeOptions& options) { return Chooser(graph, inference, options).run(); }

}  // namespace stepscope
