// SPDX-License-Identifier: GPL-3.0-or-later
// Which module groups are open.
#pragma once

#include <string>
#include <unordered_set>

#include "views/graph/graph_model.h"

namespace stepscope {

using OpenGroups = std::unordered_set<std::string>;  // module paths

// Groups open at the start: all of a graph of at most `nodes` nodes, else none.
OpenGroups defaultOpen(const GraphModel& model, int nodes = 90);

// Every group that has a box.
OpenGroups allGroups(const GraphModel& model);

// The groups to open so that a node is seen.
OpenGroups groupsAround(const GraphModel& model, int modelNode);

}  // namespace stepscope
