// Folds multiplication and division by a constant into the factor of the matrix product before or after it (the 1/sqrt(d) of
// attention and its gradient). Runs after fold_transposes, which brings products and scales together.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status foldScales(Graph& graph, PassContext& context);

}  // namespace stepscope
