// A node that computes again for the backward phase what another one computed.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace stepscope {

// Adds "<name>_recompute", of the phase kRecompute, with the operator and attributes of `original` and the lineage of a copy
// of it. One name for each output; an empty one: absent. Types of results are not set.
NodeId addRecomputedCopy(Graph& graph, NodeId original, std::vector<ValueId> inputs, std::vector<std::string> outputs);

}  // namespace stepscope
