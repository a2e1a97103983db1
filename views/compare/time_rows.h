// SPDX-License-Identifier: GPL-3.0-or-later
// The times and bytes of two runs as rows of tables. Pure functions.
#pragma once

#include "views/common/row_table.h"

namespace stepscope {

enum class Times { kOperators, kStepPhases, kBuild, kMemory };
std::vector<TableColumn> timeColumns(Times which);
// Operators select the first such instruction of the open plan, which may be nullptr. `comparable`, `alike`: see PairTimes.
std::vector<TableRow> timeRows(const RunComparison& comparison, Times which, const PlanSnapshot* plan,
                               bool comparable = true, bool alike = true);

}  // namespace stepscope
