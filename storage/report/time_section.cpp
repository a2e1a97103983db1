#include <fmt/format.h>

#include <algorithm>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr const char* kNotMeasured =
    "No instruction times were recorded. Turn recording on (it costs at most 2 % of a step) to fill this.";

bool measured(const ReportData& data) { return !data.timing.ops.empty(); }

std::string sampledNote(const ReportData& data) {
  const Timing& t = data.timing;
  if (t.sampledSteps == t.steps) return fmt::format("Over {} steps, warm-up left out.", countText(t.steps));
  return fmt::format("Over {} of {} steps, evenly chosen; warm-up left out.", countText(t.sampledSteps), countText(t.steps));
}

}  // namespace

std::string timeSection(const ReportData& data) {
  if (data.steps.empty()) return {};
  if (data.timing.phases.empty()) return section("time", "Step time", "", emptyNote(kNotMeasured));
  std::string stack, rows;
  for (const PhaseTime& phase : data.timing.phases) {
    stack += fmt::format("<i style=\"flex:{:.5f};background:var(--{})\" title=\"{} {}\"></i>", std::max(phase.share, 1e-4),
                         phaseToken(phase.phase), html(phase.phase), percentText(phase.share));
    rows += fmt::format("<tr><td class=l><i class=k style=\"background:var(--{})\"></i>{}</td>{}{}</tr>\n",
                        phaseToken(phase.phase), html(phase.phase), statsCells(phase.time),
                        shareCell(phase.share, phaseToken(phase.phase)));
  }
  rows += fmt::format("<tr><td class=l><b>whole step</b></td>{}<td class=dim>wall time</td></tr>\n",
                      statsCells(data.timing.step));
  const std::string table =
      fmt::format("<div class=scroll><table><thead><tr>{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                  head("Phase of the step", "sum of its instructions in one step", false), statsHead(),
                  head("share", "of the time of all instructions"), rows);
  return section("time", "Step time", sampledNote(data), fmt::format("<div class=stack>{}</div>{}", stack, table));
}

std::string opsSection(const ReportData& data) {
  if (!measured(data)) return {};
  constexpr std::size_t kShown = 30;
  std::string rows;
  double rest = 0;
  for (std::size_t i = 0; i < data.timing.ops.size(); ++i) {
    const OpTime& op = data.timing.ops[i];
    if (i >= kShown) {
      rest += op.share;
      continue;
    }
    rows += fmt::format(
        "<tr><td class=l><i class=k style=\"background:var(--{})\"></i>{}</td><td class=\"l "
        "dim\">{}</td><td>{}</td>{}{}</tr>\n",
        categoryToken(op.category), htmlElided(op.op, 48), html(op.phase), countText(op.instructions),
        shareCell(op.share, categoryToken(op.category), data.timing.ops.front().share), statsCells(op.time));
  }
  if (rest > 0)
    rows += fmt::format("<tr><td class=\"l dim\" colspan=3>{} more operators</td>{}<td colspan=7></td></tr>\n",
                        data.timing.ops.size() - kShown, shareCell(rest, "other", data.timing.ops.front().share));
  const std::string table =
      fmt::format("<div class=scroll><table><thead><tr>{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                  head("Operator", "operator of the step graph", false), head("phase", "part of the step", false),
                  head("in plan", "instructions with this operator in the plan"),
                  head("share", "of the time of all instructions"), statsHead(), rows);
  return section("ops", "Operators", "Time of one execution, by operator and phase. " + sampledNote(data), table);
}

std::string instructionSection(const ReportData& data) {
  if (!measured(data)) return {};
  constexpr std::size_t kShown = 25;
  std::vector<const InstructionTime*> slowest;
  for (const InstructionTime& row : data.timing.instructions)
    if (row.time.n > 0) slowest.push_back(&row);
  std::stable_sort(slowest.begin(), slowest.end(),
                   [](const auto* a, const auto* b) { return a->time.total > b->time.total; });
  const std::size_t all = slowest.size();
  slowest.resize(std::min(all, kShown));
  std::string rows;
  for (const InstructionTime* row : slowest) {
    const auto median = static_cast<double>(row->time.median);
    const std::string where = row->modulePath.empty() ? std::string(row->phase) : row->modulePath + " · " + row->phase;
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"l cut\" title=\"{}\"><i class=k style=\"background:var(--{})\"></i>{}<br><span "
        "class=\"dim under\">{}</span></td>",
        row->position, html(row->label), phaseToken(row->phase), htmlElided(withoutOwnDomain(row->label), 60),
        htmlElided(where, 60));
    rows += shareCell(row->share, phaseToken(row->phase), slowest.front()->share) + timeCell(median) +
            timeCell(static_cast<double>(row->time.p95)) + timeCell(static_cast<double>(row->time.min)) +
            timeCell(static_cast<double>(row->time.max));
    rows += fmt::format("<td>{}</td><td>{}</td><td class=\"l dim mono cut\" title=\"{}\">{}</td></tr>\n",
                        rate(row->flops, median, "GFLOP/s"),
                        rate(static_cast<double>(row->bytesRead) + static_cast<double>(row->bytesWritten), median, "GB/s"),
                        html(row->implementation), htmlElided(row->implementation, 40));
  }
  const std::string table = fmt::format(
      "<div class=scroll><table><thead><tr>{}{}{}{}{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
      head("#", "position in the execution plan"), head("Instruction", "operator, name, module and part of the step", false),
      head("share", "of the time of all instructions"), head("median", "half of the executions are shorter"),
      head("p95", "95 % of the executions are shorter"), head("min", "shortest execution"), head("max", "longest execution"),
      head("compute", "floating-point operations per second at the median; a multiply-add counts as two"),
      head("traffic", "bytes read and written per second at the median"),
      head("kernel", "implementation that was chosen", false), rows);
  return section("instructions", "Instructions",
                 fmt::format("The {} slowest of {} instructions of the plan.", slowest.size(),
                             countText(static_cast<std::int64_t>(all))),
                 table);
}

}  // namespace stepscope::storage
