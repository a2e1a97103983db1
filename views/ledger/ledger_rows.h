// SPDX-License-Identifier: GPL-3.0-or-later
// A ledger as rows of a table, its sums, and its advice in words.
#pragma once

#include <QString>
#include <vector>

#include "engine/snapshot/busy_machine.h"
#include "engine/snapshot/lab.pb.h"
#include "views/common/row_table.h"

namespace stepscope::ledger {

// What the lines are summed by.
enum class By { kModule, kOp, kPhase, kSource, kInstruction };
inline constexpr By kAll[] = {By::kModule, By::kOp, By::kPhase, By::kSource, By::kInstruction};
QString title(By by);

std::vector<TableColumn> columns(By by);
// Longest time first. A row selects what it sums, as far as `plan` is the plan of the ledger; null: nothing.
std::vector<TableRow> rows(const snapshot::LedgerReport& report, By by, const PlanSnapshot* plan);

// What the measured steps took of the processors, and what is to be said of it and of the roofs before a kernel is judged;
// empty where the machine was quiet.
ProcessorTimes processorOf(const snapshot::LedgerReport& report);
QString warning(const snapshot::LedgerReport& report);

// The lines summed, as bars show them: parts that are empty too, so that their colours stay. Time in kernels is without that
// in which their threads had no core, which has a part of its own.
struct Part {
  QString name, amount;  // "padding", "1.2 GFLOP"
  double size = 0;
};
struct Sum {
  QString name, amount, tip;  // "Operations", "20.4 GFLOP"; the exact numbers
  double size = 0;
  std::vector<Part> parts;
};
std::vector<Sum> sums(const snapshot::LedgerReport& report);

// A row for each; its key is the index in the report.
std::vector<TableColumn> adviceColumns();
std::vector<TableRow> adviceRows(const snapshot::LedgerReport& report);

}  // namespace stepscope::ledger
