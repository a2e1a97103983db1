// SPDX-License-Identifier: GPL-3.0-or-later
// Made-up graphs and plans of any length.
#pragma once

#include "views/common/snapshot_store.h"

namespace stepscope {

// MatMul and Add in turn over one value each, the second half backward: node n is the gradient of node `nodes` - 1 - n.
GraphPtr chain(int nodes);
// One instruction for each node, one buffer for each value, three places of the arena in turn.
PlanPtr planOf(const GraphSnapshot& graph);

}  // namespace stepscope
