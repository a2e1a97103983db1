// Chains of elementwise nodes become one Pointwise node: what lies between them never goes to memory. A group has one
// result; all readers of every other value of it are in it. Operands broadcast as they like; what is computed in between has
// the extents of the result. Gradients, the Gelu family and casts are steps as others are: a value in float16 or bfloat16
// within a chain is rounded as its node would have rounded it. A chain that only a sum reads (ReduceSum, ReduceMean or
// ReduceToShape along leading or trailing axes) becomes one PointwiseSum with it, and what is summed never goes to memory:
// gradients of biases, of scales and of whatever else was broadcast, and losses (what each row adds to one is computed again
// where it is asked for). Runs last: what is left of elementwise nodes after the passes that know more.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fusePointwise(Graph& graph, PassContext& context);

}  // namespace stepscope
