#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "storage/report/format.h"
#include "storage/report/roofline_chart.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kShown = 25;

const InstructionTime& timeOf(const ReportData& data, const RooflineRow& row) {
  return data.timing.instructions[row.instruction];
}

// A share above 100 % is shown as it is: the operands were nearer than the model of the caches says.
std::string shareText(double share) { return fmt::format("<td title=\"{:.4f}\">{}</td>", share, percentText(share)); }

std::string peaksText(const ReportData& data) {
  std::string text = "Measured peak of this machine: ";
  for (const PeakRow& peak : data.roofline.peaks)
    text += peak.name == kCompute ? fmt::format("{:.4g} GFLOP/s in matrix products of 1,024³", peak.perSecond * 1e-9)
                                  : fmt::format(", {:.3g} GB/s from {}{}", peak.perSecond * 1e-9, html(peak.name),
                                                peak.capacity > 0 ? " of " + bytesText(peak.capacity) : "");
  const int threads = data.roofline.peaks.front().threads;
  return text + fmt::format(", {} thread{}. An instruction’s roof is the least time that these allow.", threads,
                            threads == 1 ? "" : "s");
}

struct Group {
  std::int64_t instructions = 0;
  double roof = 0, median = 0;
};

std::string boundTable(const ReportData& data) {
  std::map<std::string_view, Group> groups;
  Group all;
  for (const RooflineRow& row : data.roofline.rows) {
    if (!row.share) continue;
    for (Group* group : {&groups[row.boundBy], &all}) {
      ++group->instructions;
      group->roof += row.roofNs;
      group->median += static_cast<double>(timeOf(data, row).time.median);
    }
  }
  const auto cells = [&](const Group& g) {
    return fmt::format("<td>{}</td>{}{}{}{}", countText(g.instructions), timeCell(g.median), timeCell(g.roof),
                       shareText(g.roof / g.median), timeCell(std::max(0.0, g.median - g.roof)));
  };
  std::string rows;
  for (const PeakRow& peak : data.roofline.peaks)
    if (const auto found = groups.find(peak.name); found != groups.end())
      rows += fmt::format("<tr><td class=l>{}</td>{}</tr>\n", html(peak.name), cells(found->second));
  rows += fmt::format("<tr><td class=l><b>one step</b></td>{}</tr>\n", cells(all));
  return fmt::format(
      "<div class=scroll><table><thead><tr>{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
      head(
          "Bound by",
          "what takes the least time that the machine allows: arithmetic, or the level of memory that delivers the operands",
          false),
      head("instructions", "instructions of the plan that were recorded"), head("median", "sum of their median times"),
      head("roof", "sum of their least times"),
      head("of roof", "least time divided by median time: 100 % = as fast as the machine allows"),
      head("above roof", "median time minus least time"), rows);
}

std::string slowTable(const ReportData& data) {
  std::vector<const RooflineRow*> slowest;
  for (const RooflineRow& row : data.roofline.rows)
    if (row.share && row.aboveNs > 0) slowest.push_back(&row);
  std::stable_sort(slowest.begin(), slowest.end(), [](const auto* a, const auto* b) { return a->aboveNs > b->aboveNs; });
  slowest.resize(std::min(slowest.size(), kShown));
  std::string rows;
  for (const RooflineRow* row : slowest) {
    const InstructionTime& i = timeOf(data, *row);
    const auto median = static_cast<double>(i.time.median);
    const std::string where = i.modulePath.empty() ? i.phase : i.modulePath + " · " + i.phase;
    rows += fmt::format(
        "<tr><td>{}</td><td class=\"l cut\" title=\"{}\"><i class=k style=\"background:var(--{})\"></i>{}<br><span "
        "class=\"dim "
        "under\">{}</span></td>",
        i.position, html(i.label), categoryToken(i.category), htmlElided(withoutOwnDomain(i.label), 60),
        htmlElided(where, 60));
    rows += timeCell(row->aboveNs) + timeCell(median) + timeCell(row->roofNs) + shareText(*row->share);
    rows += fmt::format(
        "<td class=l>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"l dim mono cut\" title=\"{}\">{}</td></tr>\n",
        html(row->boundBy), row->intensity && *row->intensity > 0 ? fmt::format("{:.3g}", *row->intensity) : "–",
        rate(i.flops, median, "GFLOP/s"), rate(static_cast<double>(row->bytes), median, "GB/s"), html(i.implementation),
        htmlElided(i.implementation, 40));
  }
  if (rows.empty()) return {};
  return fmt::format(
      "<h3>Most time above their roof</h3><div "
      "class=scroll><table><thead><tr>{}{}{}{}{}{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
      head("#", "position in the execution plan"), head("Instruction", "operator, name, module and part of the step", false),
      head("above roof", "median time minus least time: what there is to win"),
      head("median", "half of the executions are shorter"), head("roof", "least time that the machine allows"),
      head("of roof", "least time divided by median time"), head("bound by", "what takes the least time", false),
      head("op/byte", "operations per byte read or written; a multiply-add counts as two"),
      head("compute", "operations per second at the median"),
      head("traffic", "bytes read and written per second at the median"),
      head("kernel", "implementation that was chosen", false), rows);
}

}  // namespace

std::string rooflineSection(const ReportData& data) {
  if (data.steps.empty()) return {};
  if (data.roofline.peaks.empty())
    return section("roofline", "Roofline", "",
                   emptyNote("The peak of the machine was not measured. Set the option roofline (train --roofline on; it "
                             "costs 0.3 s once) to see "
                             "each instruction beside it."));
  const bool measured = std::any_of(data.roofline.rows.begin(), data.roofline.rows.end(),
                                    [](const RooflineRow& row) { return row.share.has_value(); });
  if (!measured)
    return section(
        "roofline", "Roofline", peaksText(data),
        emptyNote("No instruction times were recorded. Turn recording on (it costs at most 2 % of a step) to fill this."));
  return section("roofline", "Roofline", peaksText(data), rooflineChart(data) + boundTable(data) + slowTable(data));
}

}  // namespace stepscope::storage
