// Line charts as vectors: axes with round ticks, the series, values to ask for with a pointer.
#pragma once

#include <string>
#include <vector>

#include "storage/report/document.h"

namespace stepscope::storage {

struct ChartPoint {
  double x = 0, y = 0;
};  // a y that is not finite is drawn as a mark at the top

struct LineChart {
  std::string label;  // what y is, plain text
  std::string xLabel = "step";
  std::vector<ChartPoint> points;     // x ascending
  double width = 1076, height = 240;  // of the box
  int xTicks = 8, yTicks = 5;
  bool fromZero = false;  // y axis starts at 0
  bool smooth = false;    // raw values faint, their moving mean on top, from kFewestSmoothed points on
  doc::Quantity quantity = doc::Quantity::kNumber;  // of y
};

// Points from which on a chart is smoothed: below it their mean would say less than they do.
inline constexpr std::size_t kFewestSmoothed = 40;

// Empty when there is no point.
doc::Drawing lineDrawing(const LineChart& chart);
// The chart under a title, with what it shows in words.
doc::Figure lineFigure(const LineChart& chart, std::string title);

// Round ticks (1, 2, 5 × 10ⁿ) within [low, high]; at least one.
std::vector<double> roundTicks(double low, double high, int count);

}  // namespace stepscope::storage
