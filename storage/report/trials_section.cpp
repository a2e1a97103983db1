// Options that were tried against the step as it is, ranked, with their intervals as small plots.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Cell;
using doc::Quantity;

constexpr std::string_view kNothing = "(nothing)";

doc::Colour colourOf(const snapshot::Trial& t) {
  return t.verdict() == "faster" ? "ok" : t.verdict() == "slower" ? "error" : "muted";
}

// The interval on an axis of logarithms from -reach to reach, with a line at 1.
Cell plot(const snapshot::Trial& t, double reach) {
  constexpr double kWidth = 160, kHeight = 14;
  const auto x = [&](double ratio) {
    const double at = std::log(ratio) / reach;
    return (std::isfinite(at) ? std::clamp(at, -1.0, 1.0) + 1 : 0) / 2 * kWidth;
  };
  const double low = x(t.low()), high = std::max(x(t.high()), low + 1);
  Cell cell;
  cell.plot = doc::Drawing{kWidth, kHeight, fmt::format("{:.3f} to {:.3f}", t.low(), t.high())};
  cell.plot->line(doc::Role::kAxis, {kWidth / 2, 0}, {kWidth / 2, kHeight});
  cell.plot->line(doc::Role::kStroke, {low, kHeight / 2}, {high, kHeight / 2}, colourOf(t));
  cell.plot->circle(doc::Role::kDisc, {x(t.ratio()), kHeight / 2}, 3, colourOf(t));
  return cell;
}

std::string numbersText(const snapshot::TrialParity& p) {
  if (!p.compared()) return "not compared";
  return p.bits() ? "same bits" : fmt::format("gradients off by {:.2g}", p.gradient_relative());
}

std::vector<Cell> rowOf(const snapshot::Trial& t, double reach) {
  doc::Text change;
  if (t.option() == kNothing)
    change.add("the plan with itself");
  else if (t.option().starts_with('('))
    change.add(t.option());
  else
    change.add(t.option()).add(fmt::format(" {} → {}", t.from(), t.to()), doc::Style::kDim);
  return {std::move(change),
          t.verdict(),
          t.ratio(),
          Cell(fmt::format("{:.3f} .. {:.3f}", t.low(), t.high()))
              .withTooltip(fmt::format("{:.6g} to {:.6g}", t.low(), t.high())),
          plot(t, reach),
          t.median_ns_before(),
          t.median_ns_after(),
          Cell(static_cast<std::int64_t>(t.peak_before())),
          Cell(static_cast<std::int64_t>(t.peak_after())),
          Cell(numbersText(t.parity())).withTooltip(t.parity().worst())};
}

doc::Table emptyTable() {
  return {{{"Change", "option, its value and the value that was tried"},
           {"Verdict",
            "sign test, corrected for all trials, and at least 1 % away from 1; not shown: the interval alone leaves 1 out"},
           {"ratio", "time after divided by time before: the median of the rounds", Quantity::kFactor},
           {"95 % interval", "of the ratio", Quantity::kText, false, false, false, true},
           {"", "the interval; the line is 1: nothing changes"},
           {"before", "median time of a step as it is", Quantity::kTime},
           {"after", "median time with the option changed", Quantity::kTime},
           {"peak before", "planned bytes: state, constants, batch and arena", Quantity::kBytes},
           {"peak after", "planned bytes", Quantity::kBytes},
           {"Numbers",
            "loss, gradients and parameters of the first batch: largest difference of a gradient as a share of its "
            "norm"}},
          {}};
}

}  // namespace

MaybeSection trialsSection(const ReportData& data) {
  if (data.trials.empty()) return {};
  double reach = 0.02;
  int rounds = 0, nothing = 0, found = 0;
  for (const snapshot::Trial& t : data.trials) {
    if (t.rounds() == 0) continue;
    rounds = std::max(rounds, t.rounds());
    reach = std::max(reach, std::min(1.0, std::abs(std::log(t.ratio()))));
    if (t.option() != kNothing) continue;
    ++nothing;
    found += t.verdict() == "faster" || t.verdict() == "slower";
  }
  doc::Table table = emptyTable();
  std::string same;
  std::vector<doc::Block> failed;
  for (const snapshot::Trial& t : data.trials) {
    if (t.rounds() > 0) table.rows.push_back(rowOf(t, reach));
    if (t.identical()) same += fmt::format("{}{}={}", same.empty() ? "" : ", ", t.option(), t.to());
    if (t.verdict() == "failed")
      failed.emplace_back(doc::Paragraph{fmt::format("{}={} failed: {}", t.option(), t.to(), t.note())});
  }
  doc::Section section{"trials",
                       "Trials",
                       fmt::format("{} rounds of each pair in turns, from one state and on the same batches · the plan with "
                                   "itself: {} of {} called different",
                                   rounds, found, nothing),
                       {std::move(table)}};
  if (!same.empty()) section.blocks.emplace_back(doc::Paragraph{"No effect on the plan: " + same});
  std::move(failed.begin(), failed.end(), std::back_inserter(section.blocks));
  return section;
}

}  // namespace stepscope::storage
