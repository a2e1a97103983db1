// Where(y <= 0, 0, dy), as the gradient of Relu is written in public ops, becomes ReluGrad(dy, y): one pass over memory
// instead of two with a mask between, and in place. Post-grad, before fuse_batch_norm, which looks for ReluGrad.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseReluGradient(Graph& graph, PassContext& context);

}  // namespace stepscope
