// SPDX-License-Identifier: GPL-3.0-or-later
// Questions to a graph: text search, neighbours, what lies between a node and the loss.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "views/graph/graph_model.h"

namespace stepscope {

// Model nodes that match all words of `query`, in execution order. A word is part of the op, the name, the module path or a
// value's name, whatever the case; "op:MatMul", "name:x", "path:h.3", "value:x", "phase:backward" look in one place; a
// leading "-" excludes.
std::vector<int> searchGraph(const GraphModel& model, const std::string& query);

// The node, its producers and consumers, and its gradient or forward nodes.
std::unordered_set<int> neighboursOf(const GraphModel& model, int node);

// Every node on a way from `node` to the loss; for a gradient node, on a way from the loss to it. Empty when there is none.
std::unordered_set<int> pathToLoss(const GraphModel& model, int node);

}  // namespace stepscope
