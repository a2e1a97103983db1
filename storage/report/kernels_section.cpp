#include <fmt/format.h>

#include <algorithm>

#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

using doc::Quantity;

constexpr std::size_t kShown = 40;

std::string howKnown(const DeviceKernels& kernels) {
  const std::string rung = kernels.rung == "events"     ? "timed by events around the work"
                           : kernels.rung == "counters" ? "by records of the profiler, and counted"
                                                        : "by records of the profiler";
  std::string text = fmt::format("What the device ran in the recorded steps, {}", rung);
  if (!kernels.reason.empty()) text += fmt::format(" ({})", kernels.reason);
  text += ".";
  if (!kernels.counted.empty())
    text += fmt::format(" Counted are {}; each kernel ran alone for that, so the times are longer than in other steps.",
                        kernels.counted);
  return text;
}

doc::Table kernelTable(const DeviceKernels& kernels) {
  double all = 0;
  for (const DeviceKernelRow& row : kernels.rows) all += static_cast<double>(row.ns);
  const bool counted = !kernels.counted.empty();
  doc::Table table{{{"Kernel", "name, and the blocks and threads of its launch", Quantity::kText, true},
                    {"launches", "how often it ran", Quantity::kCount},
                    {"time", "on the device, in all", Quantity::kTime},
                    {"share", "of the time of all kernels", Quantity::kShare},
                    {"queue", "from the return of the call to the beginning, in all", Quantity::kTime},
                    {"registers", "of a thread", Quantity::kCount},
                    {"occupancy", "part of the threads of a multiprocessor that its launch allows", Quantity::kShare}},
                   {}};
  if (counted) {
    table.columns.push_back(
        {"achieved", "part of the threads of a multiprocessor that were there, measured", Quantity::kShare});
    table.columns.push_back({"read", "bytes, of the launches that were counted", Quantity::kBytes});
    table.columns.push_back({"written", "bytes, of the launches that were counted", Quantity::kBytes});
    table.columns.push_back({"traffic", "bytes read and written per second while it ran", Quantity::kByteRate});
    table.columns.push_back({"tensor", "part of the time in which tensor cores worked", Quantity::kShare});
  }
  for (std::size_t i = 0; i < std::min(kShown, kernels.rows.size()); ++i) {
    const DeviceKernelRow& row = kernels.rows[i];
    const auto known = [](std::int64_t number) { return number > 0 ? doc::Cell(number) : doc::Cell("–"); };
    const auto part = [](std::optional<double> share) { return share ? doc::Cell(*share) : doc::Cell("–"); };
    doc::Text name(elided(row.name, 80));
    if (row.blocks > 0) name.add(fmt::format("  {} × {}", row.blocks, row.threads), doc::Style::kDim);
    std::vector<doc::Cell> cells{std::move(name),
                                 row.launches,
                                 row.ns,
                                 all > 0 ? static_cast<double>(row.ns) / all : 0.0,
                                 row.queueNs,
                                 known(row.registers),
                                 row.occupancy > 0 ? doc::Cell(row.occupancy) : doc::Cell("–")};
    if (counted) {
      const bool has = row.counted > 0;
      cells.push_back(part(row.achieved));
      cells.push_back(has ? doc::Cell(row.readBytes) : doc::Cell("–"));
      cells.push_back(has ? doc::Cell(row.writtenBytes) : doc::Cell("–"));
      const auto rate = row.bytesPerNs();
      cells.push_back(rate ? doc::Cell(*rate * 1e9) : doc::Cell("–"));
      cells.push_back(part(row.tensor));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

MaybeSection kernelsSection(const ReportData& data) {
  if (data.kernels.rows.empty()) return {};
  doc::Section section{"kernels", "Kernels of the device", howKnown(data.kernels), {}};
  section.blocks.emplace_back(kernelTable(data.kernels));
  if (data.kernels.rows.size() > kShown)
    section.blocks.emplace_back(doc::Paragraph{
        fmt::format("{} more took less time each; the table device_kernels has all.", data.kernels.rows.size() - kShown),
        doc::Paragraph::Kind::kExplains});
  return section;
}

}  // namespace stepscope::storage
