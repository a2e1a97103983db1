// SPDX-License-Identifier: GPL-3.0-or-later
// The three tables of a study: classes of tensors, nodes with their overrides, gradients of parameters.
#pragma once

#include "engine/snapshot/precision.pb.h"
#include "views/common/row_table.h"
#include "views/common/snapshots.h"

namespace stepscope::precision {

inline constexpr int kExponents = 2;  // column of the classes that ExponentDelegate draws

// `first`, `last`: of the axis of exponents.
std::vector<TableColumn> classColumns(int first, int last);
std::vector<TableColumn> nodeColumns();
std::vector<TableColumn> gradientColumns();

// The key of a row is its index in the report. `graph`: of the plan that runs, where a node's row leads to; may be null.
std::vector<TableRow> classRows(const snapshot::PrecisionReport& report);
std::vector<TableRow> nodeRows(const snapshot::PrecisionReport& report, const GraphSnapshot* graph);
std::vector<TableRow> gradientRows(const snapshot::PrecisionReport& report, const GraphSnapshot* graph);

// What the whole study says in a line or two; `role` becomes "error" where numbers are not finite.
QString summary(const snapshot::PrecisionReport& report, QString* role);

}  // namespace stepscope::precision
