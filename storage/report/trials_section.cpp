// Options that were tried against the step as it is, ranked, with their intervals as small plots.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr std::string_view kNothing = "(nothing)";

std::string_view colourOf(const snapshot::Trial& t) {
  return t.verdict() == "faster" ? "ok" : t.verdict() == "slower" ? "error" : "muted";
}

// The interval on an axis of logarithms from -reach to reach, with a line at 1.
std::string plot(const snapshot::Trial& t, double reach) {
  constexpr double kWidth = 160;
  const auto x = [&](double ratio) { return (std::clamp(std::log(ratio) / reach, -1.0, 1.0) + 1) / 2 * kWidth; };
  const double low = x(t.low()), high = std::max(x(t.high()), low + 1), middle = x(t.ratio());
  return fmt::format(
      "<td class=l><svg width=\"{0}\" height=\"14\" role=\"img\" aria-label=\"{1:.3f} to {2:.3f}\">"
      "<line x1=\"{3}\" x2=\"{3}\" y1=\"0\" y2=\"14\" style=\"stroke:var(--border)\"/>"
      "<line x1=\"{4:.1f}\" x2=\"{5:.1f}\" y1=\"7\" y2=\"7\" style=\"stroke:var(--{6});stroke-width:2\"/>"
      "<circle cx=\"{7:.1f}\" cy=\"7\" r=\"3\" style=\"fill:var(--{6})\"/></svg></td>",
      kWidth, t.low(), t.high(), kWidth / 2, low, high, colourOf(t), middle);
}

std::string numbersText(const snapshot::TrialParity& p) {
  if (!p.compared()) return "not compared";
  return p.bits() ? "same bits" : fmt::format("gradients off by {:.2g}", p.gradient_relative());
}

std::string row(const snapshot::Trial& t, double reach) {
  const std::string change = t.option() == kNothing        ? std::string("the plan with itself")
                             : t.option().starts_with('(') ? html(t.option())
                                                           : fmt::format("{} <span class=dim>{} → {}</span>",
                                                                         html(t.option()), html(t.from()), html(t.to()));
  return fmt::format(
      "<tr><td class=l>{}</td><td class=l>{}</td><td title=\"{:.6g}\">{:.3f}</td><td title=\"{:.6g} to {:.6g}\">{:.3f} .. "
      "{:.3f}</td>{}{}{}{}{}<td class=l title=\"{}\">{}</td></tr>\n",
      change, html(t.verdict()), t.ratio(), t.ratio(), t.low(), t.high(), t.low(), t.high(), plot(t, reach),
      timeCell(t.median_ns_before()), timeCell(t.median_ns_after()), bytesCell(t.peak_before()), bytesCell(t.peak_after()),
      html(t.parity().worst()), html(numbersText(t.parity())));
}

}  // namespace

std::string trialsSection(const ReportData& data) {
  if (data.trials.empty()) return {};
  double reach = 0.02;
  int rounds = 0, nothing = 0, found = 0;
  for (const snapshot::Trial& t : data.trials) {
    if (t.rounds() == 0) continue;
    rounds = std::max(rounds, t.rounds());
    reach = std::max(reach, std::min(1.0, std::abs(std::log(t.ratio()))));
    if (t.option() != kNothing) continue;
    ++nothing;
    found += t.verdict() != "same";
  }
  std::string rows, same, failed;
  for (const snapshot::Trial& t : data.trials) {
    if (t.rounds() > 0) rows += row(t, reach);
    if (t.identical()) same += fmt::format("{}{}={}", same.empty() ? "" : ", ", html(t.option()), html(t.to()));
    if (t.verdict() == "failed")
      failed += fmt::format("<p>{}={} failed: {}</p>", html(t.option()), html(t.to()), html(t.note()));
  }
  const std::string table = fmt::format(
      "<div class=scroll><table><thead><tr>{}{}{}{}{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
      head("Change", "option, its value and the value that was tried", false),
      head("Verdict", "sign test, corrected for all trials of the session, and at least 1 % away from 1", false),
      head("ratio", "time after divided by time before: the median of the rounds"), head("95 % interval", "of the ratio"),
      head("", "the interval; the line is 1: nothing changes", false), head("before", "median time of a step as it is"),
      head("after", "median time with the option changed"),
      head("peak before", "planned bytes: state, constants, batch and arena"), head("peak after", "planned bytes"),
      head("Numbers",
           "loss, gradients and parameters of the first batch: largest difference of a gradient as a share of "
           "its norm",
           false),
      rows);
  return section(
      "trials", "Trials",
      fmt::format("{} rounds of each pair in turns, from one state and on the same batches · the plan with itself: "
                  "{} of {} called different",
                  rounds, found, nothing),
      table + (same.empty() ? std::string() : fmt::format("<p>No effect on the plan: {}</p>", same)) + failed);
}

}  // namespace stepscope::storage
