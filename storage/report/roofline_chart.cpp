#include "storage/report/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "storage/report/format.h"
#include "storage/report/sections.h"

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
  return shown >= 0 && shown < 4 ? countText(std::llround(std::pow(10.0, shown)))
                                 : fmt::format("{:g}", std::pow(10.0, shown));
}

std::string axes(const Frame& f) {
  std::string text;
  const double bottom = kHeight - kBottom;
  for (int power = static_cast<int>(std::ceil(f.y0)); power <= f.y1; ++power) {
    const double y = f.y(std::pow(10.0, power));
    text += fmt::format(
        "<line class=grid x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=end>{5}</text>",
        kLeft, kWidth - kRight, y, kLeft - 8, y + 4, decade(power, 9));
  }
  for (int power = static_cast<int>(f.x0); power <= f.x1; ++power) {
    const double x = f.x(std::pow(10.0, power));
    text += fmt::format(
        "<line class=grid x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=middle>{4}</text>",
        x, kTop, bottom, bottom + 16, decade(power, 0));
  }
  text += fmt::format("<line class=axis x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>", kLeft, kWidth - kRight, bottom);
  text += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=end>operations per byte</text><text x=\"{}\" y=\"{}\" "
      "text-anchor=end>GFLOP/s</text>",
      kWidth - kRight, bottom + 33, kLeft - 8, kTop - 6);
  return text;
}

// Each level's roof ends where arithmetic takes over; names stand along the lines, away from each other.
std::string roofs(const Frame& f, const std::vector<PeakRow>& peaks) {
  std::string text;
  const double compute = peaks.front().perSecond, left = std::pow(10.0, f.x0), right = std::pow(10.0, f.x1);
  double ridge = left;
  int number = 0;
  for (const PeakRow& peak : peaks) {
    if (peak.name == kCompute || !(peak.perSecond > 0)) continue;
    const double end = compute > 0 ? std::min(right, compute / peak.perSecond) : right;
    const double begin = std::max(left, std::pow(10.0, f.y0) / peak.perSecond);
    if (begin >= end) continue;
    if (ridge == left || end < ridge) ridge = end;
    text += fmt::format("<line class=roof x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", f.x(begin),
                        f.y(begin * peak.perSecond), f.x(end), f.y(end * peak.perSecond));
    const bool last = &peak == &peaks.back();  // has room below its line, the others above theirs
    const double at = std::pow(10.0, std::log10(end) - (0.22 + 0.33 * number++) * (std::log10(end) - std::log10(begin)));
    text += fmt::format("<text class=halo x=\"{:.1f}\" y=\"{:.1f}\"{}>{} {:.3g} GB/s</text>", f.x(at) + (last ? 8 : -6),
                        f.y(at * peak.perSecond) + (last ? 12 : -4), last ? "" : " text-anchor=end", html(peak.name),
                        peak.perSecond * 1e-9);
  }
  if (compute > 0)
    text += fmt::format(
        "<line class=roof x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\"/><text class=halo x=\"{2}\" y=\"{3:.1f}\" "
        "text-anchor=end>compute "
        "{4:.4g} "
        "GFLOP/s</text>",
        f.x(ridge), f.y(compute), kWidth - kRight, f.y(compute) - 6, compute * 1e-9);
  return text;
}

std::string legend(const std::vector<Dot>& dots) {
  std::set<std::string_view> present;
  for (const Dot& dot : dots) present.insert(categoryToken(dot.instruction->category));
  std::string text;
  for (const std::string_view category : present)
    text += fmt::format("<span><i class=k style=\"background:var(--{0})\"></i>{0}</span>", category);
  return fmt::format("<div class=legend>{}</div>", text);
}

}  // namespace

std::string rooflineChart(const ReportData& data) {
  const std::vector<Dot> dots = dotsOf(data);
  if (dots.empty() || data.roofline.peaks.empty()) return {};
  const Frame f = frameOf(dots, data.roofline.peaks);
  double total = 0;
  for (const Dot& dot : dots) total += dot.ns;
  std::string marks;
  for (const Dot& dot : dots)
    marks += fmt::format(
        "<circle class=spot cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" style=\"fill:var(--{})\"><title>{} {} · {} · {} of its "
        "roof · bound by "
        "{}</title></circle>",
        f.x(dot.intensity), f.y(dot.rate), 2.4 + 14 * std::sqrt(dot.ns / total), categoryToken(dot.instruction->category),
        dot.instruction->position, htmlElided(dot.instruction->label, 60), timeText(dot.ns), percentText(*dot.row->share),
        html(dot.row->boundBy));
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"operations per second over operations per byte\">{}{}{}</svg>{}",
      kWidth, kHeight, axes(f), marks, roofs(f, data.roofline.peaks), legend(dots));
}

}  // namespace stepscope::storage
