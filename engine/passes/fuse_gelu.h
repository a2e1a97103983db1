// Recognises Gelu in the nodes that exporters write for it, x/2 (1 + erf(x/√2)) and the tanh form, whichever way the factors
// are grouped. Runs before the gradient: the gradient of Gelu needs x alone, that of the chain keeps every step of it. After
// fold_constants and cse, which make the factors constants and the chain's x one value.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseGelu(Graph& graph, PassContext& context);

}  // namespace stepscope
