// Recognises x · sigmoid(a x), as exporters write SiLU (a = 1) in two nodes and QuickGelu in three, and makes it one
// QuickGelu. Runs before the gradient: the gradient of QuickGelu needs x alone, that of the nodes keeps the sigmoid beside
// it. After fold_constants and cse, which make the factor a constant and both x one value.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseSwish(Graph& graph, PassContext& context);

}  // namespace stepscope
