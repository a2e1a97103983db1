// Adds a bias within the matrix product that it is added to: the primitive adds it while it writes, and the sum needs no pass of its
// own. Runs after fold_scales: a product that is scaled before the bias is added keeps its factor.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Result<PassResult> fuseBias(Graph& graph, Inference& inference);

}  // namespace stepscope
