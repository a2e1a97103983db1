// SPDX-License-Identifier: GPL-3.0-or-later
// What two runs were and how they went, as rows of a table. Pure functions.
#pragma once

#include "views/common/row_table.h"
#include "views/common/run_times.h"

namespace stepscope {

// "3  lr 0.2 · 20 steps · 4 May 10:32 · digits · sgd": number, then what tells it from the others, then what all have alike.
std::vector<QString> runTitles(const std::vector<RunEntry>& runs);

// Columns: what, A, B, B - A.
std::vector<TableRow> summaryRows(const RunComparison& comparison, const PairTimes& times = {});

}  // namespace stepscope
