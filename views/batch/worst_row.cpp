// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/batch/worst_row.h"

#include <algorithm>
#include <cmath>

namespace stepscope {

std::optional<WorstRow> worstRow(const snapshot::RowLosses& losses, std::int64_t samples) {
  WorstRow worst;
  double sum = 0;
  int finite = 0;
  for (int i = 0; i < losses.values_size(); ++i) {
    if (losses.ignored_size() == losses.values_size() && losses.ignored(i)) continue;
    ++worst.counted;
    const double loss = losses.values(i);
    if (std::isfinite(loss)) {
      sum += loss;
      ++finite;
    } else {
      ++worst.notFinite;
    }
    const bool worse = worst.row < 0 || (std::isnan(loss) && !std::isnan(worst.loss)) || loss > worst.loss;
    if (!worse || (std::isnan(worst.loss) && worst.row >= 0)) continue;
    worst.row = i;
    worst.loss = loss;
  }
  if (worst.row < 0) return std::nullopt;
  worst.mean = finite > 0 ? sum / finite : 0;
  if (samples > 0 && losses.values_size() % samples == 0) {
    const int length = losses.values_size() / static_cast<int>(samples);
    worst.sample = worst.row / length;
    worst.place = worst.row % length;
  }
  return worst;
}

int firstBadSample(const TensorValues& values) {
  if (values.extent().empty() || values.integral()) return -1;
  std::int64_t length = 1;
  for (std::size_t i = 1; i < values.extent().size(); ++i) length *= std::max<std::int64_t>(1, values.extent()[i]);
  for (std::int64_t i = 0; i < values.count(); ++i) {
    if (!std::isfinite(values.at(i))) return static_cast<int>(i / length);
  }
  return -1;
}

}  // namespace stepscope
