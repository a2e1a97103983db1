// Line charts as inline SVG: axes with round ticks, a value at the pointer without any script.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stepscope::storage {

struct ChartPoint {
  double x = 0, y = 0;
};  // a y that is not finite is drawn as a mark at the top

struct LineChart {
  std::string label;  // what y is, plain text
  std::string xLabel = "step";
  std::vector<ChartPoint> points;     // x ascending
  double width = 1076, height = 240;  // of the view box
  int xTicks = 8, yTicks = 5;
  bool fromZero = false;                    // y axis starts at 0
  bool smooth = false;                      // raw values faint, their moving mean on top
  std::function<std::string(double)> text;  // of a y
};

// The chart as <svg>.
std::string lineChart(const LineChart& chart);

// Round ticks (1, 2, 5 × 10ⁿ) within [low, high]; at least one.
std::vector<double> roundTicks(double low, double high, int count);

}  // namespace stepscope::storage
