// SPDX-License-Identifier: GPL-3.0-or-later
// Made-up runs and start-ups, for tests of what stands two runs beside each other.
#pragma once

#include <QAbstractItemModel>
#include <QStringList>
#include <vector>

#include "views/common/run_comparison.h"
#include "views/common/view.h"

namespace stepscope {

RunEntry entry(std::int64_t id, std::int64_t steps);
// Runs 1 and 2 of three steps, which part at step 1: options, numbers, operators, phases and memory of them.
RunComparison madeComparison();
// Two nodes, MatMul and Add, forward and backward, with the values that the comparison names; and their plan.
GraphPtr comparedGraph();
PlanPtr comparedPlan();

struct Desk {
  SnapshotStore store;
  SelectionModel selection;
  Wishes wishes;
  ViewContext context{store, selection, wishes};
};

// A build of four phases, the first of which takes `ns`.
std::vector<snapshot::PhaseSpan> phases(std::int64_t ns);

// Shows the view, and its table as it then is.
const QAbstractItemModel* tableOf(View& view);
QString cell(const QAbstractItemModel* model, int row, int column);

}  // namespace stepscope
