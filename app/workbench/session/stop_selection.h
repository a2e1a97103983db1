// SPDX-License-Identifier: GPL-3.0-or-later
// What is selected where a step stops.
#pragma once

#include "views/common/selection.h"
#include "views/common/snapshot_store.h"

namespace stepscope {

// The instruction with the input that was made last: what it makes itself is not there yet.
Selection aboutToRun(const PlanSnapshot& plan, int instruction);

// Where a run stopped by what an instruction made: with the value that stopped it, as far as one is known.
Selection whatBroke(const SnapshotStore& store, const snapshot::Breakpoint& breakpoint, int made);

}  // namespace stepscope
