// The roofline as vectors, both axes logarithmic: operations per second over operations per byte, one dot per
// instruction, coloured by its category, larger the more time it takes; the roofs of arithmetic and of each level of memory
// as lines.
#pragma once

#include "storage/report/data.h"
#include "storage/report/document.h"

namespace stepscope::storage {

// Without shapes when no instruction has operations, bytes and a time. Draws the 1,500 that take the most time.
doc::Drawing rooflineDrawing(const ReportData& data);
// The categories that it has.
doc::Legend rooflineLegend(const ReportData& data);

}  // namespace stepscope::storage
