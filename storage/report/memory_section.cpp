#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "storage/bounded.h"
#include "storage/names.h"
#include "storage/report/chart.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr double kWidth = 1076, kLeft = 66, kRight = 8, kTop = 22, kHeight = 320, kBottom = 38;
constexpr std::size_t kMaxBoxes = 6000;

bool hasOwnMemory(const snapshot::Buffer& b) {
  return b.in_arena() && b.shares() < 0 && b.bytes() > 0 && b.last() >= b.first();
}

std::string label(std::string_view className) {
  std::string text(className);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string legendItem(std::string_view className, std::int64_t bytes) {
  return fmt::format("<span title=\"{} bytes\"><i class=k style=\"background:var(--c-{})\"></i>{} <b>{}</b></span>",
                     countText(bytes), className, label(className), bytesText(bytes));
}

std::string tooltip(const snapshot::Buffer& b) {
  std::string text =
      fmt::format("{}\n{} · {} ({} bytes)\nfrom instruction {} to {}, address {}\n{}", htmlElided(b.name(), 100),
                  label(bufferClassName(b.buffer_class())), bytesText(b.bytes()), countText(b.bytes()), b.first(), b.last(),
                  countText(b.offset()), htmlElided(b.decision(), 200));
  int shown = 0;
  for (const std::string& refusal : b.refusals())
    if (++shown <= 3) text += fmt::format("\nnot in place: {}", htmlElided(refusal, 160));
  return text;
}

struct Map {
  const snapshot::Plan& plan;
  double instructions, arena;
  double x(double instruction) const {
    return kLeft + std::clamp(instruction / instructions, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double y(double address) const { return kTop + kHeight - std::clamp(address / arena, 0.0, 1.0) * kHeight; }
};

std::string axes(const Map& map) {
  std::string text;
  double unit = 1;  // round numbers of KiB, MiB or GiB
  while (map.arena / unit >= 2048) unit *= 1024;
  for (double tick : roundTicks(0, map.arena / unit, 5)) {
    const double address = tick * unit;
    text += fmt::format(
        "<line class=grid x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=end>{5}</text>",
        kLeft, kWidth - kRight, map.y(address), kLeft - 8, map.y(address) + 4,
        bytesText(static_cast<std::int64_t>(address)));
  }
  const double bottom = kTop + kHeight;
  text += fmt::format("<line class=axis x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>", kLeft, kWidth - kRight, bottom);
  for (double tick : roundTicks(0, map.instructions, 8))
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor={}>{}</text>", map.x(tick), bottom + 17,
                        tick == 0 ? "start" : "middle", countText(static_cast<std::int64_t>(tick)));
  return text;
}

std::string boxes(const Map& map, std::size_t& left) {
  std::vector<const snapshot::Buffer*> drawn;
  for (const snapshot::Buffer& b : map.plan.buffers())
    if (hasOwnMemory(b)) drawn.push_back(&b);
  left = drawn.size() > kMaxBoxes ? drawn.size() - kMaxBoxes : 0;
  if (left > 0) {
    std::stable_sort(drawn.begin(), drawn.end(), [](const auto* a, const auto* b) { return a->bytes() > b->bytes(); });
    drawn.resize(kMaxBoxes);
  }
  std::string text;
  for (const snapshot::Buffer* b : drawn) {
    const double x0 = map.x(b->first()), x1 = map.x(static_cast<double>(b->last()) + 1);
    const double y0 = map.y(static_cast<double>(b->offset())),
                 y1 = map.y(static_cast<double>(b->offset()) + static_cast<double>(b->bytes()));
    text += fmt::format(
        "<rect class=box x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "fill=\"var(--c-{})\"><title>{}</title></rect>",
        x0, y1, std::max(0.7, x1 - x0), std::max(0.7, y0 - y1), bufferClassName(b->buffer_class()), tooltip(*b));
  }
  return text;
}

// Where the phases begin, the peak, and the line below which no plan of this order can go.
std::string marks(const Map& map) {
  const double bottom = kTop + kHeight;
  std::string text;
  const auto phase = [&](int instruction, const char* name) {
    if (instruction <= 0 || instruction >= map.instructions) return;
    const bool left = map.x(instruction) > kWidth - 70;
    text += fmt::format("<line class=axis x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>", map.x(instruction), kTop,
                        bottom + 34);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor={}>{}</text>", map.x(instruction) + (left ? -5 : 5),
                        bottom + 32, left ? "end" : "start", name);
  };
  text += fmt::format("<text x=\"{}\" y=\"{}\">forward</text>", kLeft, bottom + 32);
  phase(map.plan.first_backward(), "backward");
  phase(map.plan.first_optimizer(), "optimizer");
  const double peak = map.x(map.plan.peak_instruction() + 0.5);
  const bool right = peak > kWidth / 2;
  text += fmt::format(
      "<line class=mark x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text class=halo x=\"{3:.1f}\" y=\"{4}\" "
      "text-anchor={5}>peak at instruction {6}</text>",
      peak, kTop - 10, bottom, right ? peak - 6 : peak + 6, kTop - 4, right ? "end" : "start",
      countText(map.plan.peak_instruction()));
  const double bound = map.y(static_cast<double>(map.plan.lower_bound_bytes()));
  text += fmt::format(
      "<line class=bound x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"><title>lower bound {}: largest sum of live bytes "
      "in this order</title></line>",
      kLeft, kWidth - kRight, bound, bound, bytesText(boundedSize(map.plan.lower_bound_bytes())));
  return text;
}

std::string arenaMap(const snapshot::Plan& plan) {
  if (plan.arena_bytes() <= 0 || plan.instructions_size() == 0) return {};
  const Map map{plan, static_cast<double>(plan.instructions_size()), static_cast<double>(plan.arena_bytes())};
  const int peak = plan.peak_instruction();
  std::map<std::string_view, std::int64_t> live;  // of each class that is drawn, at the peak
  for (const snapshot::Buffer& b : plan.buffers()) {
    if (!hasOwnMemory(b)) continue;
    std::int64_t& bytes = live[bufferClassName(b.buffer_class())];
    if (b.first() <= peak && peak <= b.last()) bytes = saturatingAdd(bytes, b.bytes());
  }
  std::string legend;
  for (const auto& [name, bytes] : live) legend += legendItem(name, bytes);
  legend += "<span><i class=k style=\"background:var(--ok);height:2px;vertical-align:4px\"></i>lower bound</span>";
  std::size_t left = 0;
  std::string text = fmt::format(
      "<h3>Arena: address over instructions</h3><svg viewBox=\"0 0 {} {}\" role=img aria-label=\"Memory map of the arena\">",
      kWidth, kTop + kHeight + kBottom);
  text += axes(map) + boxes(map, left) + marks(map) + "</svg>";
  text += fmt::format("<div class=legend><span>Live at the peak:</span>{}</div>", legend);
  if (left > 0)
    text += fmt::format("<p class=sub>{} smaller buffers are not drawn.</p>", countText(static_cast<std::int64_t>(left)));
  return text;
}

// One bar: everything that stays from step to step.
std::string persistentBar(const snapshot::Plan& plan) {
  std::map<std::string_view, std::int64_t> classes;
  std::int64_t total = 0;
  for (const snapshot::Buffer& b : plan.buffers()) {
    if (b.in_arena() || b.shares() >= 0 || b.bytes() <= 0) continue;
    classes[bufferClassName(b.buffer_class())] = saturatingAdd(classes[bufferClassName(b.buffer_class())], b.bytes());
    total = saturatingAdd(total, b.bytes());
  }
  if (total == 0) return {};
  std::string bar, legend;
  for (const auto& [name, bytes] : classes) {
    bar += fmt::format("<i style=\"flex:{:.6f};background:var(--c-{})\" title=\"{} {}\"></i>",
                       static_cast<double>(bytes) / static_cast<double>(total), name, label(name), bytesText(bytes));
    legend += legendItem(name, bytes);
  }
  return fmt::format(
      "<h3>Persistent: {} that stay from step to step</h3><div class=stack>{}</div><div class=legend>{}</div>",
      bytesText(total), bar, legend);
}

std::string peakTable(const snapshot::Plan& plan) {
  if (plan.peak_owners().empty()) return {};
  std::vector<std::pair<std::int64_t, std::string>> owners;
  std::int64_t total = 0;
  for (const snapshot::MemoryOwner& owner : plan.peak_owners()) {
    owners.emplace_back(boundedSize(owner.bytes()), owner.owner());
    total = saturatingAdd(total, owners.back().first);
  }
  std::stable_sort(owners.begin(), owners.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string rows;
  for (std::size_t i = 0; i < std::min<std::size_t>(owners.size(), 12); ++i)
    rows += fmt::format("<tr><td class=l>{}</td>{}{}</tr>\n", htmlElided(owners[i].second, 80), bytesCell(owners[i].first),
                        shareCell(total > 0 ? static_cast<double>(owners[i].first) / static_cast<double>(total) : 0));
  return fmt::format(
      "<h3>Who owns the peak</h3><div class=scroll "
      "style=\"margin-top:0\"><table><thead><tr>{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
      head("Owner", "class or module", false), head("bytes", "live at the peak instruction"), head("share", "of the peak"),
      rows);
}

}  // namespace

std::string memorySection(const ReportData& data) {
  if (!data.plan)
    return section("memory", "Memory", "",
                   emptyNote("No execution plan was recorded. Build the model with recording on to fill this."));
  const snapshot::Plan& plan = *data.plan;
  const std::int64_t bound = boundedSize(plan.lower_bound_bytes()), arena = boundedSize(plan.arena_bytes());
  std::string sub = fmt::format("Arena <b>{}</b>, lower bound {}", bytesText(arena), bytesText(bound));
  if (bound > 0) sub += fmt::format(" ({:.3f} ×)", static_cast<double>(arena) / static_cast<double>(bound));
  sub += fmt::format(", persistent <b>{}</b>.", bytesText(boundedSize(plan.persistent_bytes())));
  if (const std::int64_t measured = data.measuredBytes(); measured > 0)
    sub += fmt::format(" Together planned {}, measured {}.", bytesText(data.plannedBytes()), bytesText(measured));
  if (!plan.signature().empty())
    sub += fmt::format("<br>Variant <span class=mono>{}</span>", htmlElided(plan.signature(), 200));
  return section("memory", "Memory", sub, arenaMap(plan) + persistentBar(plan) + peakTable(plan));
}

}  // namespace stepscope::storage
