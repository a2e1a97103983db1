// Replaces values whose contents inference knows (exported shape arithmetic, masks, scalars) by constants, and removes what
// then computes nothing. Runs first in every list: later passes match fewer, simpler nodes. Select with a constant condition
// becomes its branch, ConcatTaken the Concat of the parts it takes, a closed Gate zeros, which sums of gradients leave out;
// nodes whose predicate is constant lose it or disappear.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status foldConstants(Graph& graph, PassContext& context);

}  // namespace stepscope
