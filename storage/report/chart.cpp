#include "storage/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/snapshot/units.h"

namespace stepscope::storage {
namespace {

constexpr double kLeft = 58, kRight = 12, kTop = 16, kBottom = 26;
constexpr std::size_t kMaxDrawn = 1200, kMaxReadings = 180, kMaxMarks = 500, kFewPoints = 40;

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

void polyline(doc::Drawing& drawing, const Frame& f, const std::vector<ChartPoint>& points, doc::Role role) {
  doc::Shape shape{doc::Form::kPolyline, role};
  for (const ChartPoint& p : points) shape.at.push_back({f.x(p.x), f.y(p.y)});
  drawing.shapes.push_back(std::move(shape));
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

std::string valueText(const LineChart& chart, double y) { return doc::shownText({"", "", chart.quantity}, y); }

void axes(doc::Drawing& drawing, const LineChart& chart, const Frame& f) {
  const double right = chart.width - kRight, bottom = chart.height - kBottom;
  for (double tick : roundTicks(f.y0, f.y1, chart.yTicks)) {
    drawing.line(doc::Role::kGrid, {kLeft, f.y(tick)}, {right, f.y(tick)});
    drawing.text(doc::Role::kLabel, {kLeft - 8, f.y(tick) + 4}, valueText(chart, tick), doc::Anchor::kEnd);
  }
  drawing.line(doc::Role::kAxis, {kLeft, bottom}, {right, bottom});
  for (double tick : roundTicks(f.x0, f.x1, chart.xTicks))
    if (tick == std::round(tick))
      drawing.text(doc::Role::kLabel, {f.x(tick), bottom + 17}, units::count(std::llround(tick)), doc::Anchor::kMiddle);
  drawing.text(doc::Role::kLabel, {kLeft - 8, bottom + 17}, chart.xLabel, doc::Anchor::kEnd);
}

void area(doc::Drawing& drawing, const LineChart& chart, const Frame& f, const std::vector<ChartPoint>& below) {
  doc::Shape shape{doc::Form::kPolygon, doc::Role::kArea};
  const double bottom = chart.height - kBottom;
  shape.at.push_back({f.x(below.front().x), bottom});
  for (const ChartPoint& p : below) shape.at.push_back({f.x(p.x), f.y(p.y)});
  shape.at.push_back({f.x(below.back().x), bottom});
  drawing.shapes.push_back(std::move(shape));
}

std::string readingText(const LineChart& chart, const ChartPoint& p) {
  return fmt::format("{} {} · {}", chart.xLabel, units::count(std::llround(p.x)), valueText(chart, p.y));
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

doc::Drawing lineDrawing(const LineChart& chart) {
  doc::Drawing drawing;
  if (chart.points.empty()) return drawing;
  std::vector<ChartPoint> points;
  std::copy_if(chart.points.begin(), chart.points.end(), std::back_inserter(points), finite);
  const Frame f = frameOf(chart);
  drawing.width = chart.width;
  drawing.height = chart.height;
  drawing.label = chart.label;
  drawing.top = kTop;
  drawing.bottom = chart.height - kBottom;
  axes(drawing, chart, f);
  const std::vector<ChartPoint> drawn = thinned(points);
  const bool smooth = chart.smooth && points.size() >= kFewestSmoothed;
  if (!drawn.empty()) {
    const std::vector<ChartPoint> strong = smooth ? thinned(smoothed(points)) : drawn;
    area(drawing, chart, f, strong);
    if (smooth) polyline(drawing, f, drawn, doc::Role::kFaint);
    polyline(drawing, f, strong, doc::Role::kCurve);
  }
  if (points.size() <= kFewPoints)
    for (const ChartPoint& p : points) drawing.circle(doc::Role::kPoint, {f.x(p.x), f.y(p.y)}, 2.4);
  std::size_t marks = 0;
  for (const ChartPoint& p : chart.points) {
    if (std::isfinite(p.y) || ++marks > kMaxMarks) continue;
    const double x = f.x(p.x);
    drawing.shapes.push_back({doc::Form::kPolygon,
                              doc::Role::kNotFinite,
                              {{x, kTop + 4}, {x + 5, kTop - 5}, {x - 5, kTop - 5}},
                              0,
                              {},
                              doc::Anchor::kStart,
                              {},
                              readingText(chart, p)});
  }
  for (std::size_t i = 0; i < points.size(); i += points.size() / kMaxReadings + 1)
    drawing.readings.push_back({{f.x(points[i].x), f.y(points[i].y)}, readingText(chart, points[i])});
  return drawing;
}

doc::Figure lineFigure(const LineChart& chart, std::string title) {
  doc::Figure figure{std::move(title), {}, lineDrawing(chart)};
  const ChartPoint *low = nullptr, *high = nullptr;
  std::int64_t notFinite = 0;
  for (const ChartPoint& p : chart.points) {
    if (!finite(p)) {
      ++notFinite;
      continue;
    }
    if (!low || p.y < low->y) low = &p;
    if (!high || p.y > high->y) high = &p;
  }
  if (!low) return figure;
  const ChartPoint &first = chart.points.front(), &last = chart.points.back();
  figure.summary =
      fmt::format("{} at {} {}, {} at {}; least {} at {}, largest {} at {}", valueText(chart, first.y), chart.xLabel,
                  units::count(std::llround(first.x)), valueText(chart, last.y), units::count(std::llround(last.x)),
                  valueText(chart, low->y), units::count(std::llround(low->x)), valueText(chart, high->y),
                  units::count(std::llround(high->x)));
  if (notFinite > 0) figure.summary += fmt::format("; {} not finite", units::count(notFinite));
  return figure;
}

}  // namespace stepscope::storage
