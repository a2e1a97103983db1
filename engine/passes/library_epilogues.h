// Lets matrix products on a GPU do what its library does while it writes them: Gelu in its form with tanh, the slope of that
// Gelu, and the sums that are the gradient of a bias, which the product of the weight's gradient adds up from the operand
// that it reads anyway. Each saves a pass over memory. Where the library has no algorithm, the parts are launched one after
// the other. Post-grad on numbers for extents: after fuse_epilogue, which puts the bias into the product; before
// fuse_pointwise, which would take Gelu, and so before strided_views, which leaves these products the copies of parts that
// they read. On a CPU it does nothing: chains of elementwise nodes work in the cache there.
//
// Gelu stays a node where option recompute.plan or recompute.budget asks for a choice of what is computed again: its result
// is the cheapest stash there is.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status libraryEpilogues(Graph& graph, PassContext& context);

}  // namespace stepscope
