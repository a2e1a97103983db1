#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"
#include "storage/report/roofline_chart.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Quantity;

constexpr std::size_t kShown = 25;

const InstructionTime& timeOf(const ReportData& data, const RooflineRow& row) {
  return data.timing.instructions[row.instruction];
}

std::string peaksText(const ReportData& data) {
  std::string text = "Measured peak of this machine: ";
  for (const PeakRow& peak : data.roofline.peaks)
    text += peak.name == kCompute ? units::flopRate(peak.perSecond, 1e9) + " in matrix products of 1,024³"
                                  : fmt::format(", {} from {}{}", units::byteRate(peak.perSecond, 1e9), peak.name,
                                                peak.capacity > 0 ? " of " + units::bytes(peak.capacity) : "");
  const int threads = data.roofline.peaks.front().threads;
  return text + fmt::format(", {} thread{}. An instruction’s roof is the least time that these allow.", threads,
                            threads == 1 ? "" : "s");
}

struct Group {
  std::int64_t instructions = 0;
  double roof = 0, median = 0;
};

doc::Table boundTable(const ReportData& data) {
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
  doc::Table table{
      {{"Bound by",
        "what takes the least time that the machine allows: arithmetic, or the level of memory that delivers the operands"},
       {"instructions", "instructions of the plan that were recorded", Quantity::kCount},
       {"median", "sum of their median times", Quantity::kTime},
       {"roof", "sum of their least times", Quantity::kTime},
       {"of roof", "least time divided by median time: 100 % = as fast as the machine allows", Quantity::kShare},
       {"above roof", "median time minus least time", Quantity::kTime}},
      {}};
  const auto add = [&table](doc::Text name, const Group& g) {
    table.rows.push_back(
        {std::move(name), g.instructions, g.median, g.roof, g.roof / g.median, std::max(0.0, g.median - g.roof)});
  };
  for (const PeakRow& peak : data.roofline.peaks)
    if (const auto found = groups.find(peak.name); found != groups.end()) add(peak.name, found->second);
  add(doc::Text().add("one step", doc::Style::kStrong), all);
  return table;
}

doc::Table slowTable(const ReportData& data) {
  std::vector<const RooflineRow*> slowest;
  for (const RooflineRow& row : data.roofline.rows)
    if (row.share && row.aboveNs > 0) slowest.push_back(&row);
  std::stable_sort(slowest.begin(), slowest.end(), [](const auto* a, const auto* b) { return a->aboveNs > b->aboveNs; });
  slowest.resize(std::min(slowest.size(), kShown));
  // A share above 100 % is shown as it is: the operands were nearer than the model of the caches says.
  doc::Table table{{{"#", "position in the execution plan", Quantity::kCount},
                    {"Instruction", "operator, name, module and part of the step", Quantity::kText, true},
                    {"above roof", "median time minus least time: what there is to win", Quantity::kTime},
                    {"median", "half of the executions are shorter", Quantity::kTime},
                    {"roof", "least time that the machine allows", Quantity::kTime},
                    {"of roof", "least time divided by median time", Quantity::kShare},
                    {"bound by", "what takes the least time"},
                    {"op/byte", "operations per byte read or written; a multiply-add counts as two", Quantity::kNumber},
                    {"compute", "operations per second at the median", Quantity::kFlopRate},
                    {"traffic", "bytes read and written per second at the median", Quantity::kByteRate},
                    {"bytes", "read and written, as the plan has it", Quantity::kBytes},
                    {"measured", "bytes that were counted while its kernels ran", Quantity::kBytes},
                    {"kernel", "implementation that was chosen", Quantity::kText, true, true, true}},
                   {}};
  for (const RooflineRow* row : slowest) {
    const InstructionTime& i = timeOf(data, *row);
    const double perSecond = i.time.median > 0 ? 1e9 / static_cast<double>(i.time.median) : 0;
    const bool computes = row->intensity && *row->intensity > 0;
    table.rows.push_back({i.position, instructionCell(i, doc::categoryColour(i.category)), row->aboveNs, i.time.median,
                          row->roofNs, *row->share, row->boundBy, computes ? doc::Cell(row->intensity) : doc::Cell("–"),
                          i.flops * perSecond, static_cast<double>(row->bytes) * perSecond, row->bytes,
                          row->measuredBytes ? doc::Cell(*row->measuredBytes) : doc::Cell("–"),
                          elided(i.implementation, 60)});
  }
  if (data.roofline.counted.empty()) {
    constexpr std::ptrdiff_t kBytes = 10;  // and kBytes + 1, what was measured beside it
    table.columns.erase(table.columns.begin() + kBytes, table.columns.begin() + kBytes + 2);
    for (auto& row : table.rows) row.erase(row.begin() + kBytes, row.begin() + kBytes + 2);
  }
  return table;
}

}  // namespace

MaybeSection rooflineSection(const ReportData& data) {
  if (data.steps.empty()) return {};
  if (data.roofline.peaks.empty())
    return doc::emptySection("roofline", "Roofline",
                             "The peak of the machine was not measured. Set the option roofline (train --roofline on; it "
                             "costs 0.3 s once) to see each instruction beside it.");
  const bool measured = std::any_of(data.roofline.rows.begin(), data.roofline.rows.end(),
                                    [](const RooflineRow& row) { return row.share.has_value(); });
  doc::Section section{"roofline", "Roofline", peaksText(data), {}};
  if (const double waiting = data.roofline.peaks.front().waiting; peaksDisturbed(waiting))
    section.blocks.emplace_back(
        doc::Paragraph{fmt::format("The roofs were {}: a roof may be above the least time.", disturbedText(waiting)),
                       doc::Paragraph::Kind::kBad});
  if (!measured) {
    section.blocks.emplace_back(doc::Paragraph{
        "No instruction times were recorded. Turn recording on (it costs at most 2 % of a step) to fill this.",
        doc::Paragraph::Kind::kEmpty});
    return section;
  }
  if (doc::Drawing drawing = rooflineDrawing(data); !drawing.empty()) {
    section.blocks.emplace_back(doc::Figure{{}, {}, std::move(drawing)});
    section.blocks.emplace_back(rooflineLegend(data));
  }
  section.blocks.emplace_back(boundTable(data));
  if (doc::Table slow = slowTable(data); !slow.rows.empty()) {
    section.blocks.emplace_back(doc::Heading{"Most time above their roof"});
    section.blocks.emplace_back(std::move(slow));
  }
  return section;
}

}  // namespace stepscope::storage
