// What follows a matrix product is done by it while it writes: adding a bias, adding a residual or another gradient, Relu.
// Each sum then needs no pass over memory of its own. Runs after fold_scales: a product that is scaled before a bias is
// added keeps its factor.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseEpilogue(Graph& graph, PassContext& context);

}  // namespace stepscope
