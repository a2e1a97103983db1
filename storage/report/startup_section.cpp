#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "storage/bounded.h"
#include "storage/report/chart.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr double kWidth = 1076, kRow = 23, kAxis = 24;
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxBoxes = 4000;

std::string tooltip(const PhaseRow& phase) {
  std::string text = fmt::format("{}\n{}", html(phase.name), timeText(static_cast<double>(phase.ns)));
  if (phase.count > 0) text += fmt::format("\n{} items", countText(phase.count));
  if (phase.peakBytes > 0) text += fmt::format("\nmemory at its end {}", bytesText(phase.peakBytes));
  if (!phase.error.empty()) text += fmt::format("\nfailed: {}", html(phase.error));
  return text;
}

// Between reading a model and building it somebody looks at the set-up: that is no time of a phase and would fill the chart.
constexpr std::int64_t kWait = 1'000'000;

// By the begin of a phase: how long nothing ran in all before it, gaps shorter than kWait not counted.
std::map<std::int64_t, std::int64_t> waitsBefore(const std::vector<PhaseRow>& phases) {
  std::map<std::int64_t, std::int64_t> ends, waits;
  for (const PhaseRow& phase : phases) {
    if (phase.depth != 0) continue;
    auto& end = ends[phase.beginNs];
    end = std::max(end, phase.beginNs + phase.ns);
  }
  std::int64_t sum = 0, last = ends.empty() ? 0 : ends.begin()->first;
  for (const auto& [begin, end] : ends) {
    if (begin - last >= kWait) waits[begin] = sum += begin - last;
    last = std::max(last, end);
  }
  return waits;
}

std::string flameChart(const ReportData& data) {
  const auto waits = waitsBefore(data.phases);
  const auto beginOf = [&waits](const PhaseRow& phase) {
    const auto wait = waits.upper_bound(phase.beginNs);
    return phase.beginNs - (wait == waits.begin() ? 0 : std::prev(wait)->second);
  };
  std::int64_t begin = beginOf(data.phases.front()), end = begin;
  int deepest = 0;
  for (const PhaseRow& phase : data.phases) {
    begin = std::min(begin, beginOf(phase));
    end = std::max(end, beginOf(phase) + phase.ns);
    deepest = std::clamp(phase.depth, deepest, kMaxDepth);
  }
  const double span = std::max(1.0, static_cast<double>(end - begin));
  const auto x = [&](std::int64_t ns) { return static_cast<double>(ns - begin) / span * kWidth; };
  const double height = kAxis + (deepest + 1) * kRow;
  std::string text =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"Flame chart of the start-up\">", kWidth, height);
  for (double tick : roundTicks(0, span, 8)) {
    const double at = tick / span * kWidth;
    const bool left = at > kWidth - 60;
    text += fmt::format("<line class=grid x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"4\" y2=\"{1}\"/>", at, height);
    text += fmt::format("<text x=\"{:.1f}\" y=\"12\" text-anchor={}>{}</text>", at + (left ? -4 : 4), left ? "end" : "start",
                        tick == 0 ? "0" : timeText(tick));
  }
  std::size_t boxes = 0;
  for (const PhaseRow& phase : data.phases) {
    if (phase.depth < 0 || phase.depth > kMaxDepth || ++boxes > kMaxBoxes) continue;
    const double left = x(beginOf(phase));
    const double width = std::max(0.8, static_cast<double>(phase.ns) / span * kWidth);
    const double top = kAxis + phase.depth * kRow;
    text += fmt::format(
        "<g><rect class=box x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"2\" "
        "fill=\"var(--{})\"/><title>{}</title>",
        left, top, width, kRow - 2, phase.error.empty() ? fmt::format("flame{}", std::min(phase.depth, 2)) : "error",
        tooltip(phase));
    const auto letters = static_cast<std::size_t>(std::max(0.0, (width - 8) / 6.4));
    if (letters >= 7 || letters >= phase.name.size())
      text += fmt::format("<text class=lab x=\"{:.1f}\" y=\"{:.1f}\" pointer-events=none>{}</text>", left + 5, top + 15,
                          htmlElided(phase.name, letters));
    text += "</g>";
  }
  return text + "</svg>\n";
}

std::string phaseRow(const PhaseRow& phase, std::int64_t total) {
  const double share = total > 0 ? static_cast<double>(phase.ns) / static_cast<double>(total) : 0;
  return fmt::format("<tr><td class=\"l{}\" style=\"padding-left:{}px\">{}{}</td>{}{}<td>{}</td>{}</tr>\n",
                     phase.depth > 0 ? " dim" : "", std::min(phase.depth, 8) * 18, htmlElided(phase.name, 80),
                     phase.error.empty() ? "" : fmt::format(" <span class=bad>{}</span>", htmlElided(phase.error, 200)),
                     timeCell(static_cast<double>(phase.ns)), shareCell(share),
                     phase.count > 0 ? countText(phase.count) : "",
                     phase.peakBytes > 0 ? bytesCell(phase.peakBytes) : "<td></td>");
}

// Every phase; of the children only those that take at least 0.5 % of the start-up, or failed.
std::string phaseTable(const ReportData& data) {
  const std::int64_t total = data.startUpNs();
  std::string rows;
  std::int64_t hidden = 0, hiddenNs = 0;
  int within = -1;  // depth of the hidden phase whose parts come now; -1: none
  const auto flush = [&] {
    if (hidden > 0)
      rows += fmt::format(
          "<tr><td class=\"l dim\" style=\"padding-left:18px\">{} shorter spans</td>{}<td></td><td></td><td></td></tr>\n",
          hidden, timeCell(static_cast<double>(hiddenNs)));
    hidden = hiddenNs = 0;
  };
  for (const PhaseRow& phase : data.phases) {
    if (phase.depth == 0) flush();
    if (phase.depth > 0 && phase.error.empty() && phase.ns < total / 200) {
      ++hidden;
      if (within < 0 || phase.depth <= within) {
        hiddenNs = saturatingAdd(hiddenNs, phase.ns);
        within = phase.depth;
      }
      continue;
    }
    within = -1;
    rows += phaseRow(phase, total);
  }
  flush();
  return fmt::format("<div class=scroll><table><thead><tr>{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                     head("Phase", "part of the start-up; indented: part of the one above", false),
                     head("time", "wall time of the phase"), head("share", "of the sum of all phases"),
                     head("items", "nodes, matches or kernels worked on"),
                     head("memory", "resident memory of the worker when it ended"), rows);
}

}  // namespace

std::string startUpSection(const ReportData& data) {
  if (data.phases.empty())
    return section("startup", "Start-up", "",
                   emptyNote("No phase was recorded. Build the model with recording on to fill this."));
  const std::string sub =
      fmt::format("From the file to the first step: {} in {} phases.", timeText(static_cast<double>(data.startUpNs())),
                  std::count_if(data.phases.begin(), data.phases.end(), [](const PhaseRow& p) { return p.depth == 0; }));
  return section("startup", "Start-up", sub, flameChart(data) + phaseTable(data));
}

std::string passSection(const ReportData& data) {
  if (data.passes.empty()) return section("passes", "Passes", "", emptyNote("No pass ran in this build."));
  std::string rows;
  for (const PassRow& pass : data.passes) {
    // The same condition fails at many nodes: say it once.
    std::map<std::string, std::pair<std::int64_t, std::string>> reasons;
    for (const NearMissRow& miss : pass.nearMisses) {
      auto& [count, example] = reasons[miss.condition];
      if (count++ == 0) example = miss.nodeName.empty() ? fmt::format("node {}", miss.node) : miss.nodeName;
    }
    std::string details;
    for (const auto& [condition, found] : reasons)
      details += fmt::format("<li>{} <span class=dim>× {}, first at {}</span></li>", html(condition), found.first,
                             htmlElided(found.second, 80));
    if (!details.empty())
      details = fmt::format("<details><summary>{} near {}</summary><ul>{}</ul></details>",
                            countText(static_cast<std::int64_t>(pass.nearMisses.size())),
                            pass.nearMisses.size() == 1 ? "miss" : "misses", details);
    std::string notes = html(pass.notes);
    for (std::size_t at = 0; (at = notes.find('\n', at)) != std::string::npos;) notes.replace(at, 1, "<br>");
    const std::int64_t change = pass.nodesAfter - pass.nodesBefore;
    rows += fmt::format(
        "<tr><td class=l>{}</td>{}<td>{}</td><td>{}</td><td>{} → {}{}</td><td class=\"l w\">{}{}</td></tr>\n",
        htmlElided(pass.name, 60), timeCell(static_cast<double>(pass.ns)), countText(pass.matches),
        countText(static_cast<std::int64_t>(pass.nearMisses.size())), countText(pass.nodesBefore),
        countText(pass.nodesAfter),
        change == 0 ? ""
                    : fmt::format(" <span class=dim>({}{})</span>", change > 0 ? "+" : "−", countText(std::abs(change))),
        notes, details);
  }
  const std::string table =
      fmt::format("<div class=scroll><table><thead><tr>{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                  head("Pass", "pass over the graph, in order", false), head("time", "wall time of the pass"),
                  head("matches", "places where it applied"), head("near misses", "places where it almost applied"),
                  head("nodes", "nodes before and after"),
                  head("what it did", "decisions, and the first condition that failed", false), rows);
  return section("passes", "Passes", "What each pass over the graph changed, and where it almost applied.", table);
}

}  // namespace stepscope::storage
