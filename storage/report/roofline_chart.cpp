#include "storage/report/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/snapshot/units.h"
#include "storage/report/format.h"

namespace stepscope::storage {
namespace {

constexpr double kWidth = 1076, kHeight = 400, kLeft = 62, kRight = 14, kTop = 18, kBottom = 40;
constexpr std::size_t kMaxDrawn = 1500;
constexpr double kDecades = 5;  // shown below the highest roof

struct Dot {
  double intensity = 0, rate = 0, ns = 0;  // operations per byte; operations per second
  const InstructionTime* instruction = nullptr;
  const RooflineRow* row = nullptr;
};

// Powers of ten.
struct Frame {
  double x0 = -1, x1 = 2, y0 = 6, y1 = 12;
  double x(double intensity) const {
    return kLeft + std::clamp((std::log10(intensity) - x0) / (x1 - x0), 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double y(double rate) const {
    return kHeight - kBottom - std::clamp((std::log10(rate) - y0) / (y1 - y0), 0.0, 1.0) * (kHeight - kTop - kBottom);
  }
};

std::vector<Dot> dotsOf(const ReportData& data) {
  std::vector<Dot> dots;
  for (const RooflineRow& row : data.roofline.rows) {
    const InstructionTime& instruction = data.timing.instructions[row.instruction];
    const auto ns = static_cast<double>(instruction.time.median);
    const double rate = instruction.flops / ns * 1e9;
    if (row.share && row.intensity && *row.intensity > 0 && std::isfinite(*row.intensity) && rate > 0 && std::isfinite(rate))
      dots.push_back({*row.intensity, rate, ns, &instruction, &row});
  }
  std::stable_sort(dots.begin(), dots.end(), [](const Dot& a, const Dot& b) { return a.ns > b.ns; });
  dots.resize(std::min(dots.size(), kMaxDrawn));
  return dots;
}

Frame frameOf(const std::vector<Dot>& dots, const std::vector<PeakRow>& peaks) {
  double low = INFINITY, high = -INFINITY, slowest = INFINITY, fastest = -INFINITY;
  for (const Dot& dot : dots) {
    low = std::min(low, dot.intensity);
    high = std::max(high, dot.intensity);
    slowest = std::min(slowest, dot.rate);
    fastest = std::max(fastest, dot.rate);
  }
  const double compute = peaks.front().perSecond;
  for (const PeakRow& peak : peaks)
    if (peak.name != kCompute && peak.perSecond > 0 && compute > 0)
      high = std::max(high, compute / peak.perSecond);  // where its roof ends
  Frame f;
  f.x0 = std::floor(std::log10(low) - 0.05);
  f.x1 = std::max(f.x0 + 1, std::ceil(std::log10(high) + 0.05));
  f.y1 = std::log10(std::max(fastest, compute)) + 0.25;
  f.y0 = std::min(f.y1 - 1, std::max(f.y1 - kDecades, std::floor(std::log10(slowest) - 0.05)));
  return f;
}

std::string decade(int power, int unit) {
  const int shown = power - unit;
  return shown >= 0 && shown < 4 ? units::count(std::llround(std::pow(10.0, shown)))
                                 : fmt::format("{:g}", std::pow(10.0, shown));
}

void axes(doc::Drawing& drawing, const Frame& f) {
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  for (int power = static_cast<int>(std::ceil(f.y0)); power <= f.y1; ++power) {
    const double y = f.y(std::pow(10.0, power));
    drawing.line(doc::Role::kGrid, {kLeft, y}, {right, y});
    drawing.text(doc::Role::kLabel, {kLeft - 8, y + 4}, decade(power, 9), doc::Anchor::kEnd);
  }
  for (int power = static_cast<int>(f.x0); power <= f.x1; ++power) {
    const double x = f.x(std::pow(10.0, power));
    drawing.line(doc::Role::kGrid, {x, kTop}, {x, bottom});
    drawing.text(doc::Role::kLabel, {x, bottom + 16}, decade(power, 0), doc::Anchor::kMiddle);
  }
  drawing.line(doc::Role::kAxis, {kLeft, bottom}, {right, bottom});
  drawing.text(doc::Role::kLabel, {right, bottom + 33}, "operations per byte", doc::Anchor::kEnd);
  drawing.text(doc::Role::kLabel, {kLeft - 8, kTop - 6}, "GFLOP/s", doc::Anchor::kEnd);
}

// Each level's roof ends where arithmetic takes over; names stand along the lines, away from each other.
void roofs(doc::Drawing& drawing, const Frame& f, const std::vector<PeakRow>& peaks) {
  const double compute = peaks.front().perSecond, left = std::pow(10.0, f.x0), right = std::pow(10.0, f.x1);
  double ridge = left;
  int number = 0;
  for (const PeakRow& peak : peaks) {
    if (peak.name == kCompute || !(peak.perSecond > 0)) continue;
    const double end = compute > 0 ? std::min(right, compute / peak.perSecond) : right;
    const double begin = std::max(left, std::pow(10.0, f.y0) / peak.perSecond);
    if (begin >= end) continue;
    if (ridge == left || end < ridge) ridge = end;
    drawing.line(doc::Role::kRoof, {f.x(begin), f.y(begin * peak.perSecond)}, {f.x(end), f.y(end * peak.perSecond)});
    const bool last = &peak == &peaks.back();  // has room below its line, the others above theirs
    const double at = std::pow(10.0, std::log10(end) - (0.22 + 0.33 * number++) * (std::log10(end) - std::log10(begin)));
    drawing.text(doc::Role::kHalo, {f.x(at) + (last ? 8 : -6), f.y(at * peak.perSecond) + (last ? 12 : -4)},
                 peak.name + ' ' + units::byteRate(peak.perSecond, 1e9), last ? doc::Anchor::kStart : doc::Anchor::kEnd);
  }
  if (!(compute > 0)) return;
  drawing.line(doc::Role::kRoof, {f.x(ridge), f.y(compute)}, {kWidth - kRight, f.y(compute)});
  drawing.text(doc::Role::kHalo, {kWidth - kRight, f.y(compute) - 6}, "compute " + units::flopRate(compute, 1e9),
               doc::Anchor::kEnd);
}

}  // namespace

doc::Legend rooflineLegend(const ReportData& data) {
  std::set<doc::Colour> present;
  for (const Dot& dot : dotsOf(data)) present.insert(doc::categoryColour(dot.instruction->category));
  doc::Legend legend;
  for (const doc::Colour category : present) legend.items.push_back({category, std::string(category), {}, {}});
  return legend;
}

doc::Drawing rooflineDrawing(const ReportData& data) {
  const std::vector<Dot> dots = dotsOf(data);
  doc::Drawing drawing{kWidth, kHeight, "Operations per second over operations per byte"};
  if (dots.empty() || data.roofline.peaks.empty()) return drawing;
  const Frame f = frameOf(dots, data.roofline.peaks);
  double total = 0;
  for (const Dot& dot : dots) total += dot.ns;
  axes(drawing, f);
  for (const Dot& dot : dots)
    drawing.circle(doc::Role::kSpot, {f.x(dot.intensity), f.y(dot.rate)}, 2.4 + 14 * std::sqrt(dot.ns / total),
                   doc::categoryColour(dot.instruction->category),
                   fmt::format("{} {} · {} · {} of its roof · bound by {}", dot.instruction->position,
                               elided(dot.instruction->label, 60), units::time(dot.ns), units::percent(*dot.row->share),
                               dot.row->boundBy));
  roofs(drawing, f, data.roofline.peaks);
  return drawing;
}

}  // namespace stepscope::storage
