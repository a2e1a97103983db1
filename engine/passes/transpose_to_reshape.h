// A Transpose that moves only axes of one element leaves the elements where they are: it is a Reshape, a view that costs
// nothing.
//
//   x [2, 1, 12, 64], perm 0 2 1 3 → Reshape(x, [2, 12, 1, 64])
//
// Runs once the batch has bound the extents, before fold_transposes.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status transposeToReshape(Graph& graph, PassContext& context);

}  // namespace stepscope
