// SPDX-License-Identifier: GPL-3.0-or-later
// The comparison of a capture with PyTorch as rows of a table, and in words.
#pragma once

#include "engine/snapshot/lab.pb.h"
#include "views/common/row_table.h"
#include "views/common/snapshots.h"

namespace stepscope::capture {

std::vector<TableColumn> columns();

// What differs first, as it was compared; the key of a row is its index in the comparison. `graph`: of the plan that runs,
// where a row leads to; may be null.
std::vector<TableRow> rows(const snapshot::GoldenComparison& comparison, const GraphSnapshot* graph);

// What the comparison says in a line. `role`: "ok", "warn" where it was not checked, "error" where something differs.
QString summary(const snapshot::GoldenComparison& comparison, QString* role);

}  // namespace stepscope::capture
