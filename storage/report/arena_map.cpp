#include "storage/report/arena_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/snapshot/units.h"
#include "storage/bounded.h"
#include "storage/names.h"
#include "storage/report/chart.h"
#include "storage/report/format.h"

namespace stepscope::storage {
namespace {

using doc::Anchor;
using doc::Role;

constexpr double kWidth = 1076, kLeft = 66, kRight = 8, kTop = 22, kHeight = 320, kBottom = 38;
constexpr std::size_t kMaxBoxes = 6000;

struct Map {
  const snapshot::Plan& plan;
  double instructions, arena;
  double x(double instruction) const {
    return kLeft + std::clamp(instruction / instructions, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double y(double address) const { return kTop + kHeight - std::clamp(address / arena, 0.0, 1.0) * kHeight; }
};

std::string tooltip(const snapshot::Buffer& b) {
  std::string text =
      fmt::format("{}\n{} · {} ({})\nfrom instruction {} to {}, address {}\n{}", elided(b.name(), 100),
                  bufferLabel(b.buffer_class()), units::bytes(static_cast<std::int64_t>(b.bytes())),
                  units::bytesExact(b.bytes()), b.first(), b.last(), units::count(b.offset()), elided(b.decision(), 200));
  int shown = 0;
  for (const std::string& refusal : b.refusals())
    if (++shown <= 3) text += fmt::format("\nnot in place: {}", elided(refusal, 160));
  return text;
}

void axes(doc::Drawing& drawing, const Map& map) {
  double unit = 1;  // round numbers of KiB, MiB or GiB
  while (map.arena / unit >= 2048) unit *= 1024;
  for (double tick : roundTicks(0, map.arena / unit, 5)) {
    const double address = tick * unit;
    drawing.line(Role::kGrid, {kLeft, map.y(address)}, {kWidth - kRight, map.y(address)});
    drawing.text(Role::kLabel, {kLeft - 8, map.y(address) + 4}, units::bytes(address), Anchor::kEnd);
  }
  const double bottom = kTop + kHeight;
  drawing.line(Role::kAxis, {kLeft, bottom}, {kWidth - kRight, bottom});
  for (double tick : roundTicks(0, map.instructions, 8))
    drawing.text(Role::kLabel, {map.x(tick), bottom + 17}, units::count(static_cast<std::int64_t>(tick)),
                 tick == 0 ? Anchor::kStart : Anchor::kMiddle);
}

void boxes(doc::Drawing& drawing, const Map& map, std::size_t& left) {
  std::vector<const snapshot::Buffer*> drawn;
  for (const snapshot::Buffer& b : map.plan.buffers())
    if (hasOwnMemory(b)) drawn.push_back(&b);
  left = drawn.size() > kMaxBoxes ? drawn.size() - kMaxBoxes : 0;
  if (left > 0) {
    std::stable_sort(drawn.begin(), drawn.end(), [](const auto* a, const auto* b) { return a->bytes() > b->bytes(); });
    drawn.resize(kMaxBoxes);
  }
  for (const snapshot::Buffer* b : drawn) {
    const double x0 = map.x(b->first()), x1 = map.x(static_cast<double>(b->last()) + 1);
    const double y0 = map.y(static_cast<double>(b->offset())),
                 y1 = map.y(static_cast<double>(b->offset()) + static_cast<double>(b->bytes()));
    drawing.rect(Role::kBox, {x0, y1}, {x0 + std::max(0.7, x1 - x0), y1 + std::max(0.7, y0 - y1)},
                 bufferColour(b->buffer_class()), tooltip(*b));
  }
}

// Where the phases begin, the peak, and the line below which no plan of this order can go.
void marks(doc::Drawing& drawing, const Map& map) {
  const double bottom = kTop + kHeight;
  const auto phase = [&](int instruction, const char* name) {
    if (instruction <= 0 || instruction >= map.instructions) return;
    const double x = map.x(instruction);
    const bool left = x > kWidth - 70;
    drawing.line(Role::kAxis, {x, kTop}, {x, bottom + 34});
    drawing.text(Role::kLabel, {x + (left ? -5 : 5), bottom + 32}, name, left ? Anchor::kEnd : Anchor::kStart);
  };
  drawing.text(Role::kLabel, {kLeft, bottom + 32}, "forward");
  phase(map.plan.first_backward(), "backward");
  phase(map.plan.first_optimizer(), "optimizer");
  const double peak = map.x(map.plan.peak_instruction() + 0.5);
  const bool right = peak > kWidth / 2;
  drawing.line(Role::kMark, {peak, kTop - 10}, {peak, bottom});
  drawing.text(Role::kHalo, {right ? peak - 6 : peak + 6, kTop - 4},
               "peak at instruction " + units::count(map.plan.peak_instruction()), right ? Anchor::kEnd : Anchor::kStart);
  const double bound = map.y(static_cast<double>(map.plan.lower_bound_bytes()));
  drawing.line(Role::kBound, {kLeft, bound}, {kWidth - kRight, bound}, {},
               fmt::format("lower bound {}: largest sum of live bytes in this order",
                           units::bytes(boundedSize(map.plan.lower_bound_bytes()))));
}

}  // namespace

bool hasOwnMemory(const snapshot::Buffer& b) {
  return b.in_arena() && b.shares() < 0 && b.bytes() > 0 && b.last() >= b.first();
}

doc::Colour bufferColour(snapshot::BufferClass value) {
  const std::string_view name = bufferClassName(value);
  for (const doc::Colour colour : {"c-parameter", "c-frozen", "c-optimizer_state", "c-gradient", "c-activation", "c-stash",
                                   "c-backward", "c-workspace", "c-input", "c-constant", "c-update"})
    if (colour.substr(2) == name) return colour;
  return "other";
}

std::string bufferLabel(snapshot::BufferClass value) {
  std::string text(bufferClassName(value));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

doc::Drawing arenaMap(const snapshot::Plan& plan, std::size_t& left) {
  doc::Drawing drawing{kWidth, kTop + kHeight + kBottom, "Memory map of the arena"};
  left = 0;
  if (plan.arena_bytes() <= 0 || plan.instructions_size() == 0) return drawing;
  const Map map{plan, static_cast<double>(plan.instructions_size()), static_cast<double>(plan.arena_bytes())};
  axes(drawing, map);
  boxes(drawing, map, left);
  marks(drawing, map);
  return drawing;
}

}  // namespace stepscope::storage
