// Decides which values lie in memory in nChw16c, or in nhwc where a whole group is bfloat16 (kernels/layout.h). Values that
// an op wants in one layout form a group (LayoutRule of the ops; Concat, Split, sums, Expand and gates follow where what
// they do along the channels allows it); a group leaves the plain layout when convolutions gain more bytes by it than
// Reorder nodes at its edges cost. Only the place of elements changes: dims, contents and everything that people see stay
// the logical ones. Only for kernels of the CPU: those of a GPU take plain memory. A match is a value; near misses name the
// group's reason. Late in `specialise`: it needs numbers for the extents, and the nodes that really run.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status assignLayouts(Graph& graph, PassContext& context);

}  // namespace stepscope
