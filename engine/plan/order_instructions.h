// In which order the nodes of a step are run.
#pragma once

#include <vector>

#include "engine/ops/op_registry.h"
#include "engine/plan/plan.h"

namespace stepscope {

// Whether the node sums gradients up over micro steps: its result is written over the sum before.
bool accumulates(const Node& node);

// An instruction for each node, without operands: forward, backward and recompute in graph order, then what joins the
// accumulated gradients, so that state is written at the end only and a step can be thrown away until there; then the
// optimizer, the update entry. `overlap`: collectives that sum up are as late as early_collectives.h says.
std::vector<Instruction> orderedInstructions(const Graph& graph, const OpRegistry& ops, bool overlap);

}  // namespace stepscope
