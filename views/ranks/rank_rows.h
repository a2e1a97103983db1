// SPDX-License-Identifier: GPL-3.0-or-later
// The processes of a run and their collectives as rows of tables.
#pragma once

#include <vector>

#include "views/common/rank_times.h"
#include "views/common/row_table.h"

namespace stepscope::ranks {

std::vector<TableColumn> columns();
std::vector<TableRow> rows(const RankTimes::Table& table);

std::vector<TableColumn> collectiveColumns();
// A row selects the instruction of its collective where `plan` has one of that name; `plan` may be null.
std::vector<TableRow> collectiveRows(const RankTimes::Table& table, const PlanPtr& plan);

// How unequal the ranks are, and how much of a step is communication alone; empty for a run of one process.
QString summary(const RankTimes::Table& table);

}  // namespace stepscope::ranks
