#include "engine/recompute/choose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "engine/recompute/apply.h"

namespace stepscope {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

tl::unexpected<Error> badEntry(std::string_view entry, std::string_view found) {
  return invalidOption("recompute.plan", fmt::format("entry '{}' has {}; expected PATTERN:1:COUNT (COUNT -1 = all), or "
                                                     "PATTERN:0:COUNT to leave it",
                                                     entry, found));
}

void describePatterns(const StashReport& report, PassResult& result) {
  struct Sum {
    std::size_t count = 0;
    std::int64_t bytes = 0, traffic = 0;
    double flops = 0;
  };
  std::map<std::string, Sum> sums;
  for (const auto* list : {&report.stashes, &report.costly, &report.blocks})
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
    result.notes.push_back(
        fmt::format("pattern '{}': {} occurrence{}, {} bytes of stashes, {:.0f} flops and {} bytes moved to make them again",
                    pattern, sum.count, sum.count == 1 ? "" : "s", sum.bytes, sum.flops, sum.traffic));
  for (const RefusedStash& refused : report.refused)
    result.nearMisses.push_back({refused.node, fmt::format("{} bytes stay: {}", refused.bytes, refused.reason)});
}

void describeRequests(const RecomputeStudy& study, const std::vector<RecomputeRequest>& requests, PassResult& result) {
  for (const RecomputeRequest& request : requests) {
    if (!request.apply) continue;
    const std::int64_t all = study.occurrences(request.pattern);
    const std::vector<std::string> meant = study.meant(request.pattern);
    const bool other = all > 0 && meant.front() != request.pattern;
    result.notes.push_back(all == 0
                               ? fmt::format("requested '{}': no such pattern in this graph", request.pattern)
                               : fmt::format("requested '{}'{}: {} of {} occurrences", request.pattern,
                                             other ? fmt::format(", here '{}'", fmt::join(meant, "', '")) : std::string(),
                                             request.count < 0 ? all : std::min(request.count, all), all));
  }
}

void describeChoice(const RecomputeChoice& chosen, RecomputeOutcome& outcome) {
  std::map<std::string, std::size_t> counts;
  for (const RecomputeCandidate* candidate : chosen) ++counts[candidate->pattern];
  std::string plan;
  for (const auto& [pattern, count] : counts) plan += fmt::format("{}{} × '{}'", plan.empty() ? "" : ", ", count, pattern);
  outcome.result.notes.push_back(fmt::format("chosen: {}; {} nodes run again; live activations {} → {} bytes", plan,
                                             outcome.result.matches, outcome.peakBefore, outcome.peakAfter));
}

}  // namespace

Result<std::vector<RecomputeRequest>> parseRecomputePlan(std::string_view text) {
  std::vector<RecomputeRequest> requests;
  while (!trimmed(text).empty()) {
    const auto comma = text.find(',');
    const std::string_view entry = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto second = entry.rfind(':');
    const auto first =
        second == std::string_view::npos || second == 0 ? std::string_view::npos : entry.rfind(':', second - 1);
    if (first == std::string_view::npos) return badEntry(entry, "not three fields");
    const std::string_view pattern = trimmed(entry.substr(0, first)),
                           kind = trimmed(entry.substr(first + 1, second - first - 1)),
                           count = trimmed(entry.substr(second + 1));
    RecomputeRequest request{std::string(pattern)};
    if (pattern.empty()) return badEntry(entry, "no pattern");
    if (kind != "0" && kind != "1") return badEntry(entry, fmt::format("kind '{}'", kind));
    request.apply = kind == "1";
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), request.count);
    if (error != std::errc() || end != count.data() + count.size() || request.count < -1)
      return badEntry(entry, fmt::format("count '{}'", count));
    std::erase_if(requests, [&](const RecomputeRequest& other) { return other.pattern == request.pattern; });
    requests.push_back(std::move(request));
  }
  return requests;
}

Result<RecomputeOutcome> recompute(Graph& graph, Inference& inference, const RecomputeOptions& options) {
  RecomputeOutcome outcome;
  const RecomputeStudy study(graph, inference, options.plan, [&options] { return options.cancel.check("recompute"); });
  describePatterns(study.report(), outcome.result);
  describeRequests(study, options.requests, outcome.result);
  for (const RecomputeRequest& request : options.requests)
    if (request.apply && request.count != 0 && study.occurrences(request.pattern) == 0)
      outcome.absent.push_back(request.pattern);
  if (study.requested(options.requests).empty() && options.budget == 0) return outcome;
  SS_ASSIGN(const RecomputeEffect before, study.evaluate({}));
  RecomputeChoice chosen;
  RecomputeEffect after;
  if (const auto earlier = options.known ? study.choiceAt(options.known->places) : std::nullopt) {
    SS_ASSIGN(after, study.evaluate(*earlier));
    outcome.knownTaken = after.peak == options.known->peak;
    if (outcome.knownTaken) chosen = *earlier;
  }
  if (!outcome.knownTaken) {
    SS_ASSIGN(chosen, study.choose(options.requests, options.budget));
    SS_ASSIGN(after, study.evaluate(chosen));
  }
  outcome.choice = {study.places(chosen), after.peak};
  outcome.peakBefore = before.peak;
  outcome.peakAfter = after.peak;
  if (!chosen.empty()) {
    outcome.result.matches = applyRecompute(graph, chosen);
    describeChoice(chosen, outcome);
  }
  outcome.overBudget = options.budget > 0 && outcome.peakAfter > options.budget;
  return outcome;
}

}  // namespace stepscope
