// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/value_history/value_series.h"

#include <algorithm>
#include <map>

namespace stepscope {

std::vector<ValueSeries> valueSeries(const std::vector<StepPtr>& steps) {
  std::vector<ValueSeries> series;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  // The newest step gives the order and the ids; the graph may have been built again since an older one.
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    for (const auto& s : (*step)->statistics()) {
      const auto [at, isNew] = places.try_emplace({s.kind(), s.of()}, series.size());
      if (isNew) series.push_back({s.kind(), s.of(), s.name(), s.value(), s.node(), s.statistics().count(), {}});
      const auto& t = s.statistics();
      series[at->second].points.push_back(
          {(*step)->step(), t.norm(), t.mean(), t.std(), t.min(), t.max(), t.nan() + t.inf()});
    }
  }
  for (ValueSeries& s : series) std::reverse(s.points.begin(), s.points.end());
  const auto rank = [](const ValueSeries& s) {
    return s.kind == "gradient" ? 0 : s.kind == "parameter" ? 1 : s.kind == "output" ? 2 : 3;
  };
  std::stable_sort(series.begin(), series.end(),
                   [&](const ValueSeries& a, const ValueSeries& b) { return rank(a) < rank(b); });
  return series;
}

}  // namespace stepscope
