// Removes nodes that hand their input on unchanged: Identity, Cast to the same type, Reshape/Expand/ReduceToShape/Tile to
// the same shape, Transpose with the identity permutation, Dropout outside training or with ratio 0, Concat/Sum/Max/Min/Mean
// of one. Runs after fold_constants (shapes and ratios are constants then) and before cse. Values that the user fetches keep
// their names: a graph output is never replaced by an input or initializer.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status eliminateNoOps(Graph& graph, PassContext& context);

}  // namespace stepscope
