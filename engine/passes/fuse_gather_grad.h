// Adds the gradient of an embedding to another gradient of the same table in place: only the rows that were picked are
// touched, where the sum of two dense tensors reads and writes the whole table. Tied tables of language models have such
// sums. Runs before fuse_pointwise, which would take the sum.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseGatherGrad(Graph& graph, PassContext& context);

}  // namespace stepscope
