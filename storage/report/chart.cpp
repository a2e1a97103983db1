#include "storage/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "storage/report/format.h"

namespace stepscope::storage {
namespace {

constexpr double kLeft = 58, kRight = 12, kTop = 16, kBottom = 26;
constexpr std::size_t kMaxDrawn = 1200, kMaxHover = 180;

struct Frame {
  double width, height, x0, x1, y0, y1;
  double x(double value) const { return kLeft + (value - x0) / (x1 - x0) * (width - kLeft - kRight); }
  double y(double value) const { return height - kBottom - (value - y0) / (y1 - y0) * (height - kTop - kBottom); }
};

bool finite(const ChartPoint& p) { return std::isfinite(p.x) && std::isfinite(p.y); }

Frame frameOf(const LineChart& chart) {
  Frame f{chart.width, chart.height, chart.points.front().x, chart.points.back().x, INFINITY, -INFINITY};
  for (const ChartPoint& p : chart.points) {
    if (!finite(p)) continue;
    f.y0 = std::min(f.y0, p.y);
    f.y1 = std::max(f.y1, p.y);
  }
  if (f.y0 > f.y1) f.y0 = 0, f.y1 = 1;
  if (chart.fromZero) f.y0 = std::min(0.0, f.y0);
  const double margin = (f.y1 - f.y0) * 0.06;
  if (!chart.fromZero) f.y0 -= margin;
  f.y1 += margin;
  // A constant: some room around it, relative to its size, so that huge values keep a span too.
  const double least = std::max(1e-12, std::max(std::abs(f.y0), std::abs(f.y1)) * 1e-6);
  if (!(f.y1 - f.y0 > least)) f.y0 -= least, f.y1 += least;
  if (!(f.x1 > f.x0)) f.x0 -= 0.5, f.x1 += 0.5;
  return f;
}

// The smallest and largest value of each stretch, so that no spike disappears.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points) {
  if (points.size() <= kMaxDrawn) return points;
  std::vector<ChartPoint> result;
  const std::size_t stretch = points.size() / (kMaxDrawn / 2) + 1;
  for (std::size_t i = 0; i < points.size(); i += stretch) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>(std::min(points.size(), i + stretch));
    const auto less = [](const ChartPoint& a, const ChartPoint& b) { return a.y < b.y; };
    auto [low, high] = std::minmax_element(begin, end, less);
    if (high < low) std::swap(low, high);
    result.push_back(*low);
    if (low != high) result.push_back(*high);
  }
  return result;
}

std::string polyline(const Frame& f, const std::vector<ChartPoint>& points, const char* style) {
  std::string text = fmt::format("<polyline class={} points=\"", style);
  for (const ChartPoint& p : points) text += fmt::format("{:.1f},{:.1f} ", f.x(p.x), f.y(p.y));
  return text + "\"/>";
}

// Centred, so that the line does not lag behind a falling loss; the window narrows at both ends.
std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points) {
  const std::size_t reach = std::clamp<std::size_t>(points.size() / 25, 2, 200);
  std::vector<double> sums = {0};
  for (const ChartPoint& p : points) sums.push_back(sums.back() + p.y);
  std::vector<ChartPoint> result;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t side = std::min({reach, i, points.size() - 1 - i});
    result.push_back({points[i].x, (sums[i + side + 1] - sums[i - side]) / static_cast<double>(2 * side + 1)});
  }
  return result;
}

std::string axes(const LineChart& chart, const Frame& f) {
  std::string text;
  for (double tick : roundTicks(f.y0, f.y1, chart.yTicks))
    text += fmt::format(
        "<line class=grid x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=end>{5}</text>",
        kLeft, chart.width - kRight, f.y(tick), kLeft - 8, f.y(tick) + 4, html(chart.text(tick)));
  const double bottom = chart.height - kBottom;
  text += fmt::format("<line class=axis x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>", kLeft, chart.width - kRight, bottom);
  for (double tick : roundTicks(f.x0, f.x1, chart.xTicks)) {
    if (tick != std::round(tick)) continue;
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=middle>{}</text>", f.x(tick), bottom + 17,
                        countText(std::llround(tick)));
  }
  text +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=end>{}</text>", kLeft - 8, bottom + 17, html(chart.xLabel));
  return text;
}

std::string hover(const LineChart& chart, const Frame& f, const std::vector<ChartPoint>& points) {
  std::string text;
  const std::size_t stride = points.size() / kMaxHover + 1;
  const double bottom = chart.height - kBottom;
  const double strip =
      (chart.width - kLeft - kRight) / static_cast<double>(std::max<std::size_t>(1, (points.size() + stride - 1) / stride));
  for (std::size_t i = 0; i < points.size(); i += stride) {
    const double x = f.x(points[i].x);
    const double y = f.y(points[i].y);
    const char* anchor = x < kLeft + 90 ? "start" : x > chart.width - 110 ? "end" : "middle";
    text += fmt::format(
        "<g class=h><rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{:.1f}\"/><g class=t><line x1=\"{:.1f}\" "
        "x2=\"{:.1f}\" y1=\"{}\" y2=\"{:.1f}\"/><circle "
        "cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor={}>{} {} · {}</text></g></g>",
        x - strip / 2, kTop - 12, strip, bottom - kTop + 12, x, x, kTop, bottom, x, y, x, kTop - 2, anchor,
        html(chart.xLabel), countText(std::llround(points[i].x)), html(chart.text(points[i].y)));
  }
  return text;
}

}  // namespace

std::vector<double> roundTicks(double low, double high, int count) {
  std::vector<double> ticks;
  const double span = high - low;
  if (!(span > 0) || !std::isfinite(span)) return {low};
  const double rough = span / std::max(1, count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = power * factor;
    if (step >= rough) break;
  }
  const double first = std::ceil(low / step);
  for (int i = 0; i <= 2 * count + 2; ++i) {
    const double tick = (first + i) * step;
    if (tick > high + step * 1e-9) break;
    ticks.push_back(tick);
  }
  if (ticks.empty()) ticks.push_back(low);
  return ticks;
}

std::string lineChart(const LineChart& chart) {
  if (chart.points.empty()) return {};
  std::vector<ChartPoint> points;
  std::copy_if(chart.points.begin(), chart.points.end(), std::back_inserter(points), finite);
  const Frame f = frameOf(chart);
  std::string text =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"{}\">", chart.width, chart.height, html(chart.label));
  text += axes(chart, f);
  const std::vector<ChartPoint> drawn = thinned(points);
  const bool smooth = chart.smooth && points.size() >= 40;
  if (!drawn.empty()) {
    text += fmt::format("<path class=area d=\"M{:.1f} {:.1f}", f.x(drawn.front().x), chart.height - kBottom);
    for (const ChartPoint& p : smooth ? thinned(smoothed(points)) : drawn)
      text += fmt::format("L{:.1f} {:.1f}", f.x(p.x), f.y(p.y));
    text += fmt::format("L{:.1f} {:.1f}Z\"/>", f.x(drawn.back().x), chart.height - kBottom);
  }
  text += polyline(f, drawn, smooth ? "raw" : "line");
  if (smooth) text += polyline(f, thinned(smoothed(points)), "line");
  if (points.size() <= 40)
    for (const ChartPoint& p : points)
      text += fmt::format("<circle class=dot cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.4\"/>", f.x(p.x), f.y(p.y));
  std::size_t marks = 0;
  for (const ChartPoint& p : chart.points) {
    if (std::isfinite(p.y) || ++marks > 500) continue;
    text += fmt::format("<path class=nan d=\"M{0:.1f} {1}l5 -9h-10z\"><title>{2} {3}: {4}</title></path>", f.x(p.x),
                        kTop + 4, html(chart.xLabel), countText(std::llround(p.x)), numberText(p.y));
  }
  return text + hover(chart, f, points) + "</svg>\n";
}

}  // namespace stepscope::storage
