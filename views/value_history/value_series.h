// SPDX-License-Identifier: GPL-3.0-or-later
// What the recorded steps say of each parameter, gradient, module output and watched value, over the steps. Pure.
#pragma once

#include <string>
#include <vector>

#include "views/common/snapshot_store.h"

namespace stepscope {

struct ValueSeries {
  struct Point {
    std::int64_t step = 0;
    double norm = 0, mean = 0, std = 0, min = 0, max = 0;
    std::int64_t notFinite = 0;
  };

  std::string kind, of, name;  // as RecordedStatistics; hostile text
  int value = -1, node = -1;   // in the graph of the newest point
  std::int64_t count = 0;      // elements
  std::vector<Point> points;   // ascending, at least one
};

// Gradients, parameters, outputs, watched values, each in the order of the newest step that recorded them.
std::vector<ValueSeries> valueSeries(const std::vector<StepPtr>& steps);

}  // namespace stepscope
