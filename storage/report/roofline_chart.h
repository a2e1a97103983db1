// The roofline as inline SVG, both axes logarithmic: operations per second over operations per byte, one dot per
// instruction, coloured by its category, larger the more time it takes; the roofs of arithmetic and of each level of memory
// as lines.
#pragma once

#include <string>

#include "storage/report/data.h"

namespace stepscope::storage {

// Empty when no instruction has operations, bytes and a time. Draws the 1,500 that take the most time.
std::string rooflineChart(const ReportData& data);

}  // namespace stepscope::storage
