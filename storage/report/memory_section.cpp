#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/snapshot/units.h"
#include "storage/bounded.h"
#include "storage/report/arena_map.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kMostOwners = 12;

using ClassBytes = std::map<snapshot::BufferClass, std::int64_t>;

std::vector<doc::LegendItem> legendOf(const ClassBytes& classes) {
  std::vector<doc::LegendItem> items;
  for (const auto& [value, bytes] : classes)
    items.push_back({bufferColour(value), bufferLabel(value), units::bytes(bytes), units::bytesExact(bytes)});
  return items;
}

void addArena(std::vector<doc::Block>& blocks, const snapshot::Plan& plan) {
  std::size_t left = 0;
  doc::Drawing map = arenaMap(plan, left);
  if (map.empty()) return;
  const int peak = plan.peak_instruction();
  ClassBytes live;  // of each class that is drawn, at the peak
  for (const snapshot::Buffer& b : plan.buffers()) {
    if (!hasOwnMemory(b)) continue;
    std::int64_t& bytes = live[b.buffer_class()];
    if (b.first() <= peak && peak <= b.last()) bytes = saturatingAdd(bytes, b.bytes());
  }
  doc::Legend legend{"Live at the peak:", legendOf(live)};
  legend.items.push_back({"ok", "lower bound", {}, {}, true});
  blocks.emplace_back(doc::Figure{"Arena: address over instructions", {}, std::move(map)});
  blocks.emplace_back(std::move(legend));
  if (left > 0)
    blocks.emplace_back(
        doc::Paragraph{fmt::format("{} smaller buffers are not drawn.", units::count(static_cast<std::int64_t>(left))),
                       doc::Paragraph::Kind::kExplains});
}

// One bar: everything that stays from step to step.
void addPersistent(std::vector<doc::Block>& blocks, const snapshot::Plan& plan) {
  ClassBytes classes;
  std::int64_t total = 0;
  for (const snapshot::Buffer& b : plan.buffers()) {
    if (b.in_arena() || b.shares() >= 0 || b.bytes() <= 0) continue;
    classes[b.buffer_class()] = saturatingAdd(classes[b.buffer_class()], b.bytes());
    total = saturatingAdd(total, b.bytes());
  }
  if (total == 0) return;
  doc::Stack stack;
  for (const auto& [value, bytes] : classes)
    stack.parts.push_back({static_cast<double>(bytes) / static_cast<double>(total), bufferColour(value),
                           bufferLabel(value) + ' ' + units::bytes(bytes)});
  blocks.emplace_back(doc::Heading{fmt::format("Persistent: {} that stay from step to step", units::bytes(total))});
  blocks.emplace_back(std::move(stack));
  blocks.emplace_back(doc::Legend{{}, legendOf(classes)});
}

void addPeak(std::vector<doc::Block>& blocks, const snapshot::Plan& plan) {
  if (plan.peak_owners().empty()) return;
  std::vector<std::pair<std::int64_t, std::string>> owners;
  std::int64_t total = 0;
  for (const snapshot::MemoryOwner& owner : plan.peak_owners()) {
    owners.emplace_back(boundedSize(owner.bytes()), owner.owner());
    total = saturatingAdd(total, owners.back().first);
  }
  std::stable_sort(owners.begin(), owners.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  doc::Table table{{{"Owner", "class or module"},
                    {"bytes", "live at the peak instruction", doc::Quantity::kBytes},
                    {"share", "of the peak", doc::Quantity::kShare}},
                   {}};
  for (std::size_t i = 0; i < std::min(owners.size(), kMostOwners); ++i)
    table.rows.push_back(
        {elided(owners[i].second, 80), owners[i].first,
         doc::shareCell(total > 0 ? static_cast<double>(owners[i].first) / static_cast<double>(total) : 0)});
  blocks.emplace_back(doc::Heading{"Who owns the peak"});
  blocks.emplace_back(std::move(table));
}

}  // namespace

MaybeSection memorySection(const ReportData& data) {
  if (!data.plan)
    return doc::emptySection("memory", "Memory",
                             "No execution plan was recorded. Build the model with recording on to fill this.");
  const snapshot::Plan& plan = *data.plan;
  const std::int64_t bound = boundedSize(plan.lower_bound_bytes()), arena = boundedSize(plan.arena_bytes());
  doc::Section section{"memory", "Memory", {}, {}};
  section.sub.add("Arena ").add(units::bytes(arena), doc::Style::kStrong).add(", lower bound " + units::bytes(bound));
  if (bound > 0) section.sub.add(fmt::format(" ({:.3f} ×)", static_cast<double>(arena) / static_cast<double>(bound)));
  section.sub.add(", persistent ").add(units::bytes(boundedSize(plan.persistent_bytes())), doc::Style::kStrong).add(".");
  if (const std::int64_t measured = data.measuredBytes(); measured > 0)
    section.sub.add(
        fmt::format(" Together planned {}, measured {}.", units::bytes(data.plannedBytes()), units::bytes(measured)));
  if (!plan.signature().empty()) section.sub.add("\nVariant ").add(elided(plan.signature(), 200), doc::Style::kMono);
  addArena(section.blocks, plan);
  addPersistent(section.blocks, plan);
  addPeak(section.blocks, plan);
  return section;
}

}  // namespace stepscope::storage
