// What the step was spent on: sums, the modules that took most of it, and what would shrink them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Quantity;

constexpr std::size_t kMostModules = 25;

double shareOf(double part, double all) { return all > 0 ? part / all : 0; }

std::string flopsText(std::int64_t flops) { return units::countShort(static_cast<double>(flops)); }

doc::Table sums(const LedgerRow& all, std::int64_t withoutCore) {
  doc::Table table{
      {{"Of", "operations, bytes moved, or time"},
       {"Spent on", "every unit counts once"},
       {"amount", "of one step; multiply-adds count as two operations", Quantity::kText, false, false, false, true},
       {"share", "of all operations, bytes or time of the step", Quantity::kShare}},
      {}};
  const auto add = [&table](const char* kind, const char* what, std::string amount, std::int64_t part, std::int64_t of) {
    table.rows.push_back({kind, what, doc::Cell(std::move(amount)).withTooltip(units::count(part)),
                          doc::shareCell(shareOf(static_cast<double>(part), static_cast<double>(of)))});
  };
  const auto flops = [&](const char* what, std::int64_t n) { add("operations", what, flopsText(n), n, all.flops()); };
  const auto bytes = [&](const char* what, std::int64_t n) { add("bytes", what, units::bytes(n), n, all.bytes()); };
  const auto time = [&](const char* what, std::int64_t n) { add("time", what, units::time(n), n, all.ns()); };
  flops("useful", all.flopsUseful);
  flops("of padded tokens", all.flopsPadding);
  flops("of rows whose label is ignored", all.flopsIgnored);
  flops("computed again", all.flopsRecomputed);
  bytes("payload", all.bytesPayload);
  bytes("casts", all.bytesCast);
  bytes("changes of layout", all.bytesLayout);
  bytes("copies", all.bytesCopy);
  time("in kernels", all.nsKernel - withoutCore);
  time("in kernels, its threads without a core", withoutCore);
  time("between kernels", all.nsGap);
  time("waiting", all.nsWaiting);
  return table;
}

void addModules(std::vector<doc::Block>& blocks, const LedgerRecord& ledger, const LedgerRow& all) {
  std::map<std::string, LedgerRow> byModule;
  for (const LedgerRow& line : ledger.lines) byModule[line.module].add(line);
  std::vector<std::pair<std::string, LedgerRow>> list(byModule.begin(), byModule.end());
  std::ranges::stable_sort(list, std::ranges::greater{}, [](const auto& entry) { return entry.second.ns(); });
  const auto flopsColumn = [](const char* label, const char* tooltip) {
    return doc::Column{label, tooltip, Quantity::kText, false, false, false, true};
  };
  doc::Table table{{{"Module", "of the model; (none): what belongs to no module", Quantity::kText, true},
                    {"time", "of one step", Quantity::kTime},
                    {"share", "of the time of the step", Quantity::kShare},
                    {"roof", "least time by the measured peaks of the machine", Quantity::kTime},
                    flopsColumn("useful", "operations"),
                    flopsColumn("other operations", "of padding, ignored labels, or computed again"),
                    {"payload", "bytes", Quantity::kBytes},
                    {"other bytes", "casts, changes of layout, copies", Quantity::kBytes}},
                   {}};
  for (std::size_t i = 0; i < std::min(kMostModules, list.size()); ++i) {
    const auto& [name, row] = list[i];
    table.rows.push_back({name.empty() ? std::string("(none)") : elided(name, 80), row.ns(),
                          doc::shareCell(shareOf(static_cast<double>(row.ns()), static_cast<double>(all.ns()))),
                          row.roofNs > 0 ? doc::Cell(row.roofNs) : doc::Cell(), flopsText(row.flopsUseful),
                          flopsText(row.flops() - row.flopsUseful), row.bytesPayload, row.bytes() - row.bytesPayload});
  }
  blocks.emplace_back(std::move(table));
  if (list.size() > kMostModules)
    blocks.emplace_back(doc::Paragraph{fmt::format("{} more modules", list.size() - kMostModules)});
}

void addAdvice(std::vector<doc::Block>& blocks, const LedgerRecord& ledger, const LedgerRow& all) {
  if (ledger.advice.empty()) {
    blocks.emplace_back(doc::Paragraph{"Nothing that an option or a batch would shrink takes 1 % of the step."});
    return;
  }
  doc::Bullets bullets;
  for (const LedgerAdviceRow& a : ledger.advice) {
    doc::Text& text = bullets.items.emplace_back(a.spent + ": " + a.change);
    if (!a.option.empty()) text.add(" (").add(a.option + '=' + a.value, doc::Style::kDim).add(")");
    text.add(fmt::format("; at most {} of the step, {}", units::time(a.gainNs),
                         units::percent(shareOf(a.gainNs, static_cast<double>(all.ns())))));
    if (!a.trial.empty()) text.add("\nto confirm it: ").add(a.trial, doc::Style::kDim);
  }
  blocks.emplace_back(doc::Heading{"What would shrink it"});
  blocks.emplace_back(std::move(bullets));
}

}  // namespace

MaybeSection ledgerSection(const ReportData& data) {
  if (data.ledger.lines.empty()) return {};
  const LedgerRow all = data.ledger.total();
  doc::Section section{"ledger",
                       "Ledger",
                       fmt::format("step {}, {} · every operation, byte and nanosecond in one place, none twice",
                                   data.ledger.step, units::time(all.ns())),
                       {}};
  // Which of the lines had no core is not known: the system says it of whole steps.
  if (data.ledger.processor.busy())
    section.blocks.emplace_back(doc::Paragraph{
        fmt::format("The machine was busy: {}. The times of modules below hold it; measure again on a quiet machine before "
                    "judging a kernel by them.",
                    busyText(data.ledger.processor)),
        doc::Paragraph::Kind::kBad});
  if (peaksDisturbed(data.ledger.roofWaiting))
    section.blocks.emplace_back(doc::Paragraph{
        fmt::format("The roofs were {}: a roof may be above the least time.", disturbedText(data.ledger.roofWaiting)),
        doc::Paragraph::Kind::kBad});
  section.blocks.emplace_back(sums(all, data.ledger.withoutCore()));
  addModules(section.blocks, data.ledger, all);
  addAdvice(section.blocks, data.ledger, all);
  return section;
}

}  // namespace stepscope::storage
