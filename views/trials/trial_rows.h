// SPDX-License-Identifier: GPL-3.0-or-later
// A session of trials as rows of a table, and in words.
#pragma once

#include "engine/snapshot/lab.pb.h"
#include "views/common/row_table.h"

namespace stepscope::trials {

inline constexpr int kInterval = 3;  // column that IntervalDelegate draws
inline const char* const kNothing = "(nothing)";

// `first`, `last`: of the axis of ratios.
std::vector<TableColumn> columns(double first, double last);

// The fastest first, then what has no times, the pairs of a plan with itself at the end. The key of a row is its index in
// the report. `running`: verdicts are not given yet. `options`: which of them are
// sizes.
std::vector<TableRow> rows(const snapshot::TrialsReport& report, const std::vector<snapshot::Option>& options, bool running);

// "pass.cse  on → off".
QString change(const snapshot::Trial& trial, const std::vector<snapshot::Option>& options);
// What the whole session says in a line or two; empty without a trial. `role`: "warn" where it was cancelled.
QString summary(const snapshot::TrialsReport& report, bool running, QString* role);

}  // namespace stepscope::trials
