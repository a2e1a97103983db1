#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/snapshot/units.h"
#include "storage/report/chart.h"
#include "storage/report/format.h"
#include "storage/report/sections.h"

namespace stepscope::storage {
namespace {

constexpr std::size_t kMostRows = 40;

struct Series {
  std::string of;
  double first = 0, last = 0, largest = 0;  // norms of the gradient
  double parameter = 0;                     // norm of the parameter in the newest step
  double min = 0, max = 0;
  std::int64_t points = 0, firstStep = 0, lastStep = 0;
  std::int64_t notFinite = 0, firstBadStep = -1;  // in the newest step; the first step that had any
};

std::vector<Series> seriesOf(const ReportData& data) {
  std::map<std::string, Series> found;
  for (const auto& [step, values] : data.statistics) {
    for (const snapshot::RecordedStatistics& v : values) {
      if (v.kind() != "parameter" && v.kind() != "gradient") continue;
      Series& s = found[v.of()];
      s.of = v.of();
      if (v.kind() == "parameter") {
        s.parameter = v.statistics().norm();
        continue;
      }
      const double norm = v.statistics().norm();
      if (s.points++ == 0) {
        s.first = norm;
        s.firstStep = step;
      }
      s.last = norm;
      s.lastStep = step;
      s.largest = std::max(s.largest, norm);
      s.min = v.statistics().min();
      s.max = v.statistics().max();
      s.notFinite = v.statistics().nan() + v.statistics().inf();
      if (s.notFinite > 0 && s.firstBadStep < 0) s.firstBadStep = step;
    }
  }
  std::vector<Series> all;
  for (auto& [name, s] : found)
    if (s.points > 0) all.push_back(std::move(s));
  // What is not finite first, then by size.
  std::stable_sort(all.begin(), all.end(), [](const Series& a, const Series& b) {
    if ((a.firstBadStep >= 0) != (b.firstBadStep >= 0)) return a.firstBadStep >= 0;
    return a.last > b.last;
  });
  return all;
}

// Norm of all gradients of a step together.
LineChart normChart(const ReportData& data) {
  LineChart chart;
  for (const auto& [step, values] : data.statistics) {
    double squares = 0;
    bool any = false;
    for (const snapshot::RecordedStatistics& v : values) {
      if (v.kind() != "gradient") continue;
      any = true;
      squares +=
          v.statistics().nan() + v.statistics().inf() > 0 ? std::nan("") : v.statistics().norm() * v.statistics().norm();
    }
    if (any) chart.points.push_back({static_cast<double>(step), std::sqrt(squares)});
  }
  chart.label = "Norm of all gradients over steps";
  chart.height = 180;
  chart.fromZero = true;
  return chart;
}

}  // namespace

MaybeSection valuesSection(const ReportData& data) {
  const std::vector<Series> all = seriesOf(data);
  if (all.empty()) return {};
  double largest = 0;
  for (const Series& s : all) largest = std::max(largest, s.last);
  using doc::Quantity;
  doc::Table table{{{"Parameter", "trained parameter", Quantity::kText, true, true},
                    {"share", "norm of its gradient beside the largest", Quantity::kShare},
                    {"gradient norm", "Euclidean norm in the newest step that recorded it, as accumulated, before clipping",
                     Quantity::kNumber},
                    {"first", "norm in the first step that recorded it", Quantity::kNumber},
                    {"largest", "largest norm of all recorded steps", Quantity::kNumber},
                    {"÷ parameter", "norm of the gradient divided by that of its parameter", Quantity::kNumber},
                    {"min", "smallest finite element of the gradient", Quantity::kNumber},
                    {"max", "largest finite element of the gradient", Quantity::kNumber},
                    {"n", "steps that recorded it", Quantity::kCount},
                    {"NaN, Inf", "elements that are not finite", Quantity::kCount}},
                   {}};
  const auto withGradients = std::ranges::count_if(data.statistics, [](const auto& step) {
    return std::ranges::any_of(step.second, [](const auto& v) { return v.kind() == "gradient"; });
  });
  for (std::size_t i = 0; i < all.size() && i < kMostRows; ++i) {
    const Series& s = all[i];
    table.rows.push_back({elided(s.of, 80), doc::shareCell(largest > 0 ? s.last / largest : 0), s.last, s.first, s.largest,
                          s.parameter > 0 ? doc::Cell(s.last / s.parameter) : doc::Cell(), s.min, s.max, s.points,
                          s.firstBadStep < 0 ? doc::Cell(0)
                                             : doc::Cell(doc::Text()
                                                             .add(units::count(s.notFinite), doc::Style::kStrong)
                                                             .add(fmt::format(" (first in step {})", s.firstBadStep)))});
  }
  doc::Section section{"values", "Values", {}, {lineFigure(normChart(data), ""), std::move(table)}};
  section.sub
      .add(fmt::format("Gradients of {} parameters in {} steps that recorded them (option ",
                       units::count(static_cast<std::int64_t>(all.size())),
                       units::count(static_cast<std::int64_t>(withGradients))))
      .add("record.statistics", doc::Style::kMono)
      .add(").");
  if (all.size() > kMostRows)
    section.blocks.emplace_back(doc::Paragraph{
        fmt::format("{} more in the table tensor_stats.", units::count(static_cast<std::int64_t>(all.size() - kMostRows))),
        doc::Paragraph::Kind::kExplains});
  return section;
}

}  // namespace stepscope::storage
