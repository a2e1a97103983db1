#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  chart.text = numberText;
  chart.fromZero = true;
  return chart;
}

std::string cell(double x) { return fmt::format("<td title=\"{}\">{}</td>", x, numberText(x)); }

}  // namespace

std::string valuesSection(const ReportData& data) {
  const std::vector<Series> all = seriesOf(data);
  if (all.empty()) return {};
  double largest = 0;
  for (const Series& s : all) largest = std::max(largest, s.last);
  std::string rows;
  for (std::size_t i = 0; i < all.size() && i < kMostRows; ++i) {
    const Series& s = all[i];
    rows +=
        fmt::format("<tr><td class=\"l w mono\">{}</td>{}{}{}{}{}{}{}<td>{}</td><td>{}</td></tr>\n", htmlElided(s.of, 80),
                    shareCell(largest > 0 ? s.last / largest : 0, "accent"), cell(s.last), cell(s.first), cell(s.largest),
                    s.parameter > 0 ? cell(s.last / s.parameter) : std::string("<td></td>"), cell(s.min), cell(s.max),
                    countText(s.points),
                    s.firstBadStep < 0 ? std::string("0")
                                       : fmt::format("<b>{}</b> (since step {})", countText(s.notFinite), s.firstBadStep));
  }
  std::string body = lineChart(normChart(data));
  body += fmt::format(
      "<div class=scroll><table><thead><tr>{}{}{}{}{}{}{}{}{}{}</tr></thead><tbody>\n{}</tbody></table></div>",
      head("Parameter", "trained parameter", false), head("share", "norm of its gradient beside the largest", true),
      head("gradient norm", "Euclidean norm in the newest step that recorded it, as accumulated, before clipping"),
      head("first", "norm in the first step that recorded it"), head("largest", "largest norm of all recorded steps"),
      head("÷ parameter", "norm of the gradient divided by that of its parameter"),
      head("min", "smallest finite element of the gradient"), head("max", "largest finite element of the gradient"),
      head("n", "steps that recorded it"), head("NaN, Inf", "elements that are not finite"), rows);
  if (all.size() > kMostRows)
    body += fmt::format("<p class=sub>{} more in the table tensor_stats.</p>",
                        countText(static_cast<std::int64_t>(all.size() - kMostRows)));
  return section(
      "values", "Values",
      fmt::format(
          "Gradients of {} parameters in {} steps that recorded them (option <span class=mono>record.statistics</span>).",
          countText(static_cast<std::int64_t>(all.size())), countText(static_cast<std::int64_t>(data.statistics.size()))),
      body);
}

}  // namespace stepscope::storage
