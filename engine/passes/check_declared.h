// Compares what the file declares of its values (value_info, outputs) with what the graph computes, and warns of every
// contradiction: another element type, rank or fixed extent.
//
// What the graph computes holds: stale declarations are common after a model was edited, and run all the same. Symbolic
// extents contradict nothing. Stands behind all lowerings, whose last inference it reads; changes nothing.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Reads InferOptions::declared. Each warning names the value, its node, the declared and the computed type.
Status checkDeclared(Graph& graph, PassContext& context);

}  // namespace stepscope
