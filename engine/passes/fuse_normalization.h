// Recognises LayerNormalization and RMSNormalization over the last axis in the nodes that exporters write for them below
// opset 17: mean, difference, square, mean, + epsilon, square root, quotient, * scale (+ bias). Runs before the gradient,
// whose rule for the whole needs one pass over x where the chain's needs ten. After fold_constants and cse, which make axes
// and x one value each.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseNormalization(Graph& graph, PassContext& context);

}  // namespace stepscope
