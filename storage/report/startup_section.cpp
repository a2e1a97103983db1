#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/snapshot/units.h"
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
  std::string text = fmt::format("{}\n{}", phase.name, units::time(phase.ns));
  if (phase.count > 0) text += fmt::format("\n{} items", units::count(phase.count));
  if (phase.peakBytes > 0) text += fmt::format("\nmemory at its end {}", units::bytes(phase.peakBytes));
  if (!phase.error.empty()) text += fmt::format("\nfailed: {}", phase.error);
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

doc::Drawing flameChart(const ReportData& data) {
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
  doc::Drawing drawing{kWidth, kAxis + (deepest + 1) * kRow, "Flame chart of the start-up"};
  for (double tick : roundTicks(0, span, 8)) {
    const double at = tick / span * kWidth;
    const bool left = at > kWidth - 60;
    drawing.line(doc::Role::kGrid, {at, 4}, {at, drawing.height});
    drawing.text(doc::Role::kLabel, {at + (left ? -4 : 4), 12}, tick == 0 ? "0" : units::time(tick),
                 left ? doc::Anchor::kEnd : doc::Anchor::kStart);
  }
  constexpr doc::Colour kColours[] = {"flame0", "flame1", "flame2"};
  std::size_t boxes = 0;
  for (const PhaseRow& phase : data.phases) {
    if (phase.depth < 0 || phase.depth > kMaxDepth || ++boxes > kMaxBoxes) continue;
    const double left = x(beginOf(phase));
    const double width = std::max(0.8, static_cast<double>(phase.ns) / span * kWidth);
    const double top = kAxis + phase.depth * kRow;
    drawing.rect(doc::Role::kBox, {left, top}, {left + width, top + kRow - 2},
                 phase.error.empty() ? kColours[std::min(phase.depth, 2)] : "error", tooltip(phase));
    const auto letters = static_cast<std::size_t>(std::max(0.0, (width - 8) / 6.4));
    if (letters >= 7 || letters >= phase.name.size())
      drawing.text(doc::Role::kName, {left + 5, top + 15}, elided(phase.name, letters));
  }
  return drawing;
}

std::vector<doc::Cell> phaseRow(const PhaseRow& phase, std::int64_t total) {
  doc::Text name;
  name.add(elided(phase.name, 80), phase.depth > 0 ? doc::Style::kDim : doc::Style::kPlain);
  if (!phase.error.empty()) name.add(" ").add(elided(phase.error, 200), doc::Style::kBad);
  doc::Cell first(std::move(name));
  first.indent = std::clamp(phase.depth, 0, kMaxDepth);
  return {std::move(first), phase.ns,
          doc::shareCell(total > 0 ? static_cast<double>(phase.ns) / static_cast<double>(total) : 0),
          phase.count > 0 ? doc::Cell(phase.count) : doc::Cell(),
          phase.peakBytes > 0 ? doc::Cell(phase.peakBytes) : doc::Cell()};
}

// Every phase; of the children only those that take at least 0.5 % of the start-up, or failed.
doc::Table phaseTable(const ReportData& data) {
  using doc::Quantity;
  doc::Table table{{{"Phase", "part of the start-up; indented: part of the one above", Quantity::kText, true},
                    {"time", "wall time of the phase", Quantity::kTime},
                    {"share", "of the sum of all phases", Quantity::kShare},
                    {"items", "nodes, matches or kernels worked on", Quantity::kCount},
                    {"memory", "resident memory of the worker when it ended", Quantity::kBytes}},
                   {}};
  const std::int64_t total = data.startUpNs();
  std::int64_t hidden = 0, hiddenNs = 0;
  int within = -1;  // depth of the hidden phase whose parts come now; -1: none
  const auto flush = [&] {
    if (hidden > 0) {
      doc::Cell name(doc::Text().add(fmt::format("{} shorter spans", hidden), doc::Style::kDim));
      name.indent = 1;
      table.rows.push_back({std::move(name), hiddenNs, {}, {}, {}});
    }
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
    table.rows.push_back(phaseRow(phase, total));
  }
  flush();
  return table;
}

}  // namespace

MaybeSection startUpSection(const ReportData& data) {
  if (data.phases.empty())
    return doc::emptySection("startup", "Start-up",
                             "No phase was recorded. Build the model with recording on to fill this.");
  const auto phases = std::count_if(data.phases.begin(), data.phases.end(), [](const PhaseRow& p) { return p.depth == 0; });
  return doc::Section{
      "startup",
      "Start-up",
      fmt::format("From the file to the first step: {} in {} phases.", units::time(data.startUpNs()), phases),
      {doc::Figure{{}, {}, flameChart(data)}, phaseTable(data)}};
}

}  // namespace stepscope::storage
