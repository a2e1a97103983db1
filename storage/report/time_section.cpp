#include <fmt/format.h>

#include <algorithm>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Cell;
using doc::Quantity;
using doc::Style;
using doc::Text;

constexpr std::size_t kLetters = 400;  // of a name; longer ones are nothing that somebody reads
constexpr const char* kNotMeasured =
    "No instruction times were recorded. Turn recording on (it costs at most 2 % of a step) to fill this.";

bool measured(const ReportData& data) { return !data.timing.ops.empty(); }

std::string sampledNote(const ReportData& data) {
  const Timing& t = data.timing;
  if (t.sampledSteps == t.steps) return fmt::format("Over {} steps, warm-up left out.", units::count(t.steps));
  return fmt::format("Over {} of {} steps, evenly chosen; warm-up left out.", units::count(t.sampledSteps),
                     units::count(t.steps));
}

}  // namespace

doc::Cell instructionCell(const InstructionTime& instruction, doc::Colour colour) {
  Text text = elided(withoutOwnDomain(instruction.label), kLetters);
  const std::string where =
      instruction.modulePath.empty() ? instruction.phase : instruction.modulePath + " · " + instruction.phase;
  text.add("\n" + elided(where, kLetters), Style::kDim);
  return Cell(std::move(text)).withSwatch(colour);
}

MaybeSection timeSection(const ReportData& data) {
  if (data.steps.empty()) return {};
  if (data.timing.phases.empty()) return doc::emptySection("time", "Step time", kNotMeasured);
  doc::Stack stack;
  doc::Table table{{{"Phase of the step", "sum of its instructions in one step"}}, {}};
  doc::addStatsColumns(table.columns);
  table.columns.push_back({"share", "of the time of all instructions", Quantity::kShare});
  for (const PhaseTime& phase : data.timing.phases) {
    const doc::Colour colour = doc::phaseColour(phase.phase);
    stack.parts.push_back({phase.share, colour, fmt::format("{} {}", phase.phase, units::percent(phase.share))});
    auto& row = table.rows.emplace_back();
    row.push_back(Cell(phase.phase).withSwatch(colour));
    doc::addStats(row, phase.time);
    row.push_back(doc::shareCell(phase.share, colour));
  }
  auto& whole = table.rows.emplace_back();
  whole.emplace_back(Text().add("whole step", Style::kStrong));
  doc::addStats(whole, data.timing.step);
  whole.emplace_back(Text().add("wall time", Style::kDim));
  return doc::Section{"time", "Step time", sampledNote(data), {std::move(stack), std::move(table)}};
}

MaybeSection opsSection(const ReportData& data) {
  if (!measured(data)) return {};
  constexpr std::size_t kShown = 30;
  doc::Table table{{{"Operator", "operator of the step graph"},
                    {"phase", "part of the step", Quantity::kText, false, false, true},
                    {"in plan", "instructions with this operator in the plan", Quantity::kCount},
                    {"share", "of the time of all instructions", Quantity::kShare}},
                   {}};
  doc::addStatsColumns(table.columns);
  const double largest = data.timing.ops.front().share;
  double rest = 0;
  for (std::size_t i = 0; i < data.timing.ops.size(); ++i) {
    const OpTime& op = data.timing.ops[i];
    if (i >= kShown) {
      rest += op.share;
      continue;
    }
    const doc::Colour colour = doc::categoryColour(op.category);
    auto& row = table.rows.emplace_back();
    row = {Cell(elided(op.op, 48)).withSwatch(colour), op.phase, op.instructions, doc::shareCell(op.share, colour, largest)};
    doc::addStats(row, op.time);
  }
  if (rest > 0)
    table.rows.push_back(
        {Cell(Text().add(fmt::format("{} more operators", data.timing.ops.size() - kShown), Style::kDim)).withSpan(3),
         doc::shareCell(rest, "other", largest), Cell().withSpan(7)});
  return doc::Section{
      "ops", "Operators", "Time of one execution, by operator and phase. " + sampledNote(data), {std::move(table)}};
}

MaybeSection instructionSection(const ReportData& data) {
  if (!measured(data)) return {};
  constexpr std::size_t kShown = 25;
  std::vector<const InstructionTime*> slowest;
  for (const InstructionTime& row : data.timing.instructions)
    if (row.time.n > 0) slowest.push_back(&row);
  std::stable_sort(slowest.begin(), slowest.end(),
                   [](const auto* a, const auto* b) { return a->time.total > b->time.total; });
  const std::size_t all = slowest.size();
  slowest.resize(std::min(all, kShown));
  doc::Table table{
      {{"#", "position in the execution plan", Quantity::kCount},
       {"Instruction", "operator, name, module and part of the step", Quantity::kText, true},
       {"share", "of the time of all instructions", Quantity::kShare},
       {"median", "half of the executions are shorter", Quantity::kTime},
       {"p95", "95 % of the executions are shorter", Quantity::kTime},
       {"min", "shortest execution", Quantity::kTime},
       {"max", "longest execution", Quantity::kTime},
       {"compute", "floating-point operations per second at the median; a multiply-add counts as two", Quantity::kFlopRate},
       {"traffic", "bytes read and written per second at the median", Quantity::kByteRate},
       {"kernel", "implementation that was chosen", Quantity::kText, true, true, true}},
      {}};
  for (const InstructionTime* row : slowest) {
    const double perSecond = row->time.median > 0 ? 1e9 / static_cast<double>(row->time.median) : 0;
    const double bytes = static_cast<double>(row->bytesRead) + static_cast<double>(row->bytesWritten);
    const doc::Colour colour = doc::phaseColour(row->phase);
    table.rows.push_back({row->position, instructionCell(*row, colour),
                          doc::shareCell(row->share, colour, slowest.front()->share), row->time.median, row->time.p95,
                          row->time.min, row->time.max, row->flops * perSecond, bytes * perSecond,
                          elided(row->implementation, 60)});
  }
  return doc::Section{"instructions",
                      "Instructions",
                      fmt::format("The {} slowest of {} instructions of the plan.", slowest.size(),
                                  units::count(static_cast<std::int64_t>(all))),
                      {std::move(table)}};
}

}  // namespace stepscope::storage
