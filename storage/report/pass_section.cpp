#include <fmt/format.h>

#include <cmath>
#include <map>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Cell;
using doc::Quantity;
using doc::Style;
using doc::Text;

// The same condition fails at many nodes: it is said once.
std::vector<Text> reasonsOf(const PassRow& pass) {
  std::map<std::string, std::pair<std::int64_t, std::string>> reasons;
  for (const NearMissRow& miss : pass.nearMisses) {
    auto& [count, example] = reasons[miss.condition];
    if (count++ == 0) example = miss.nodeName.empty() ? fmt::format("node {}", miss.node) : miss.nodeName;
  }
  std::vector<Text> texts;
  for (const auto& [condition, found] : reasons)
    texts.push_back(
        Text(condition).add(fmt::format(" × {}, first at {}", found.first, elided(found.second, 80)), Style::kDim));
  return texts;
}

Cell nodesCell(const PassRow& pass) {
  const std::int64_t change = pass.nodesAfter - pass.nodesBefore;
  Text text = fmt::format("{} → {}", units::count(pass.nodesBefore), units::count(pass.nodesAfter));
  if (change != 0) text.add(fmt::format(" ({}{})", change > 0 ? "+" : "", units::count(change)), Style::kDim);
  return text;
}

}  // namespace

MaybeSection passSection(const ReportData& data) {
  if (data.passes.empty()) return doc::emptySection("passes", "Passes", "No pass ran in this build.");
  doc::Table table{{{"Pass", "pass over the graph, in order"},
                    {"time", "wall time of the pass", Quantity::kTime},
                    {"matches", "places where it applied", Quantity::kCount},
                    {"near misses", "places where it almost applied", Quantity::kCount},
                    {"nodes", "nodes before and after", Quantity::kText, false, false, false, true},
                    {"what it did", "decisions, and the first condition that failed", Quantity::kText, true}},
                   {}};
  for (const PassRow& pass : data.passes) {
    const std::int64_t misses = pass.nearMissesInAll;
    Cell did(pass.notes);
    did.points = reasonsOf(pass);
    did.pointsTitle = fmt::format("{} near {}", units::count(misses), misses == 1 ? "miss" : "misses");
    if (const auto shown = std::ssize(pass.nearMisses); shown < misses)
      did.pointsTitle += fmt::format(", the first {} of them", units::count(shown));
    table.rows.push_back({elided(pass.name, 60), pass.ns, pass.matches, misses, nodesCell(pass), std::move(did)});
  }
  return doc::Section{
      "passes", "Passes", "What each pass over the graph changed, and where it almost applied.", {std::move(table)}};
}

}  // namespace stepscope::storage
