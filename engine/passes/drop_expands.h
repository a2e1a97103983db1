// An Expand in front of elementwise nodes that broadcast by themselves writes what they would read from less.
//
//   Mul(x [2, 8, 4], Expand(scale [8, 1] → [2, 8, 4])) → Mul(x, scale)
//
// A reader takes what stands before the Expand where its result keeps its extents; the Expand goes when all of them do. Runs
// before the gradient, which then adds up for the smaller operand at once, and again once the batch has bound the extents.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status dropExpands(Graph& graph, PassContext& context);

}  // namespace stepscope
