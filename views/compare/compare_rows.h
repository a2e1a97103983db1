// SPDX-License-Identifier: GPL-3.0-or-later
// What two runs were and how they went, as rows of a table. Pure functions.
#pragma once

#include "views/common/row_table.h"
#include "views/common/run_times.h"

namespace stepscope {

// "3  digits · 10:32 · 20 steps": enough to tell runs apart in a list.
QString runTitle(const RunEntry& run);

// Columns: what, A, B, B - A.
std::vector<TableRow> summaryRows(const RunComparison& comparison, const PairTimes& times = {});

}  // namespace stepscope
