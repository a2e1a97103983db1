// What the step was spent on: sums, the modules that took most of it, and what would shrink them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kMostModules = 25;

double shareOf(double part, double all) { return all > 0 ? part / all : 0; }

std::string flopsCell(std::int64_t flops) {
  return fmt::format("<td title=\"{}\">{:.3g} G</td>", flops, static_cast<double>(flops) * 1e-9);
}

std::string sums(const LedgerRow& all) {
  std::string rows;
  const auto add = [&](std::string_view kind, std::string_view what, const std::string& cell, std::int64_t part,
                       std::int64_t of) {
    rows += fmt::format("<tr><td class=l>{}</td><td class=l>{}</td>{}{}</tr>\n", kind, what, cell,
                        shareCell(shareOf(static_cast<double>(part), static_cast<double>(of))));
  };
  const auto flops = [&](std::string_view what, std::int64_t n) { add("operations", what, flopsCell(n), n, all.flops()); };
  const auto bytes = [&](std::string_view what, std::int64_t n) { add("bytes", what, bytesCell(n), n, all.bytes()); };
  const auto time = [&](std::string_view what, std::int64_t n) {
    add("time", what, timeCell(static_cast<double>(n)), n, all.ns());
  };
  flops("useful", all.flopsUseful);
  flops("of padded tokens", all.flopsPadding);
  flops("of rows whose label is ignored", all.flopsIgnored);
  flops("computed again", all.flopsRecomputed);
  bytes("payload", all.bytesPayload);
  bytes("casts", all.bytesCast);
  bytes("changes of layout", all.bytesLayout);
  bytes("copies", all.bytesCopy);
  time("in kernels", all.nsKernel);
  time("between kernels", all.nsGap);
  time("waiting", all.nsWaiting);
  return fmt::format("<div class=scroll><table><thead><tr>{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                     head("Of", "operations, bytes moved, or time", false),
                     head("Spent on", "every unit counts once", false),
                     head("amount", "of one step; multiply-adds count as two operations"),
                     head("share", "of all operations, bytes or time of the step"), rows);
}

std::string modules(const LedgerRecord& ledger, const LedgerRow& all) {
  std::map<std::string, LedgerRow> byModule;
  for (const LedgerRow& line : ledger.lines) byModule[line.module].add(line);
  std::vector<std::pair<std::string, LedgerRow>> list(byModule.begin(), byModule.end());
  std::ranges::stable_sort(list, std::ranges::greater{}, [](const auto& entry) { return entry.second.ns(); });
  std::string rows;
  for (std::size_t i = 0; i < std::min(kMostModules, list.size()); ++i) {
    const auto& [name, row] = list[i];
    rows += fmt::format("<tr><td class=l>{}</td>{}{}{}{}{}{}{}</tr>\n", name.empty() ? "(none)" : htmlElided(name, 80),
                        timeCell(static_cast<double>(row.ns())),
                        shareCell(shareOf(static_cast<double>(row.ns()), static_cast<double>(all.ns()))),
                        row.roofNs > 0 ? timeCell(row.roofNs) : "<td></td>", flopsCell(row.flopsUseful),
                        flopsCell(row.flops() - row.flopsUseful), bytesCell(row.bytesPayload),
                        bytesCell(row.bytes() - row.bytesPayload));
  }
  std::string table =
      fmt::format("<div class=scroll><table><thead><tr>{}{}{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
                  head("Module", "of the model; (none): what belongs to no module", false), head("time", "of one step"),
                  head("share", "of the time of the step"), head("roof", "least time by the measured peaks of the machine"),
                  head("useful", "operations"), head("other operations", "of padding, ignored labels, or computed again"),
                  head("payload", "bytes"), head("other bytes", "casts, changes of layout, copies"), rows);
  if (list.size() > kMostModules) table += fmt::format("<p>{} more modules</p>", list.size() - kMostModules);
  return table;
}

std::string advice(const LedgerRecord& ledger, const LedgerRow& all) {
  if (ledger.advice.empty()) return "<p>Nothing that an option or a batch would shrink takes 1 % of the step.</p>";
  std::string items;
  for (const LedgerAdviceRow& a : ledger.advice)
    items += fmt::format(
        "<li>{}: {}{}; at most {} of the step, {}{}</li>\n", html(a.spent), html(a.change),
        a.option.empty() ? std::string() : fmt::format(" (<span class=dim>{}={}</span>)", html(a.option), html(a.value)),
        timeText(a.gainNs), percentText(shareOf(a.gainNs, static_cast<double>(all.ns()))),
        a.trial.empty() ? std::string() : fmt::format("<br>to confirm it: <span class=dim>{}</span>", html(a.trial)));
  return fmt::format("<h3>What would shrink it</h3><ul>{}</ul>", items);
}

}  // namespace

std::string ledgerSection(const ReportData& data) {
  if (data.ledger.lines.empty()) return {};
  const LedgerRow all = data.ledger.total();
  return section("ledger", "Ledger",
                 fmt::format("step {}, {} · every operation, byte and nanosecond in one place, none twice", data.ledger.step,
                             timeText(static_cast<double>(all.ns()))),
                 sums(all) + modules(data.ledger, all) + advice(data.ledger, all));
}

}  // namespace stepscope::storage
