// The processes of a run next to each other: what each one took, and for whom the others waited.
#include <fmt/format.h>

#include <algorithm>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Cell;
using doc::Quantity;

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

doc::Table ranksTable(const RankReport& report) {
  doc::Table table{{{"Rank", "number of the process"},
                    {"step", "mean time of a step", Quantity::kTime},
                    {"exposed", "of it, in collectives while it did nothing else", Quantity::kTime},
                    {"waits", "in collectives, until all ranks had come", Quantity::kTime},
                    {"sends", "in collectives, then, until the results were there", Quantity::kTime},
                    {"sent", "bytes to other ranks in a step", Quantity::kBytes},
                    {"planned", "bytes that the plan said it would send", Quantity::kBytes},
                    {"state", "parameters, statistics and optimizer state that it keeps", Quantity::kBytes},
                    {"peak", "measured bytes: state, constants, batch and arena", Quantity::kBytes},
                    {"came last", "steps in which it waited least", Quantity::kNumber}},
                   {}};
  for (const RankRow& r : report.ranks)
    table.rows.push_back({std::to_string(r.rank), r.ns, r.exposedNs, r.waitNs, r.moveNs,
                          Cell(static_cast<std::int64_t>(r.sentBytes)), Cell(static_cast<std::int64_t>(r.plannedSentBytes)),
                          Cell(r.stateBytes), Cell(r.peakBytes), Cell(r.last)});
  return table;
}

doc::Table collectivesTable(const RankReport& report) {
  doc::Table table{{{"Collective", "node of the plan, or what ranks tell each other besides"},
                    {"mean wait", "over the ranks, until all had come", Quantity::kTime},
                    {"worst wait", "of the rank that waited longest", Quantity::kTime},
                    {"sends", "until the results were there", Quantity::kTime},
                    {"exposed", "of both, while a rank did nothing else", Quantity::kTime},
                    {"sent", "bytes of a rank", Quantity::kBytes},
                    {"waited for", "the rank that came last in most steps"}},
                   {}};
  for (const RankCollectiveRow& c : report.collectives)
    table.rows.push_back({c.node, c.meanWaitNs, c.worstWaitNs, c.moveNs, c.exposedNs,
                          Cell(static_cast<std::int64_t>(c.sentBytes)), fmt::format("rank {}", c.last)});
  return table;
}

}  // namespace

MaybeSection ranksSection(const ReportData& data) {
  const RankReport& report = data.ranks;
  if (report.ranks.empty()) return {};
  const auto [fast, slow] =
      std::ranges::minmax_element(report.ranks, {}, [](const RankRow& r) { return r.ns - r.exposedNs; });
  const double least = fast->ns - fast->exposedNs, most = slow->ns - slow->exposedNs;
  double exposed = 0, all = 0, busy = 0;
  for (const RankRow& r : report.ranks) {
    exposed += r.exposedNs;
    busy += r.waitNs + r.moveNs;
    all += r.ns;
  }
  doc::Section section{
      "ranks",
      "Ranks",
      fmt::format(
          "{} processes · skew {:.1f} %: rank {} computes longest, rank {} shortest · {:.1f} % of the time of a step "
          "is communication alone · {:.1f} % of communication is beside computation",
          report.ranks.size(), 100 * share(most - least, most), slow->rank, fast->rank, 100 * share(exposed, all),
          100 * share(std::max(0.0, busy - exposed), busy)),
      {ranksTable(report)}};
  if (!report.collectives.empty()) section.blocks.emplace_back(collectivesTable(report));
  return section;
}

}  // namespace stepscope::storage
