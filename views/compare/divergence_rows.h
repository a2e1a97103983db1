// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers of two runs outside the tolerance as rows of a table. Pure functions.
#pragma once

#include "views/common/row_table.h"

namespace stepscope {

std::vector<TableColumn> divergenceColumns();
// Rows select the value in the open graph that bears the name, the loss and the gradient norm too; `graph` may be nullptr.
std::vector<TableRow> divergenceRows(const RunComparison& comparison, const GraphSnapshot* graph);

}  // namespace stepscope
