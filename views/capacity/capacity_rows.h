// SPDX-License-Identifier: GPL-3.0-or-later
// What fits where, as rows of a table and in words.
#pragma once

#include "engine/snapshot/lab.pb.h"
#include "views/common/row_table.h"

namespace stepscope::capacity {

std::vector<TableColumn> columns(const snapshot::CapacityReport& report);
// By extent, without recompute first.
std::vector<TableRow> rows(const snapshot::CapacityReport& report);
// What it comes to: "batch up to 38 fits into 24.0 GiB, with recompute up to 64".
QString summary(const snapshot::CapacityReport& report);

}  // namespace stepscope::capacity
