// Gradients of weights stay in the low type in which their products were made: the cast to float32 that autodiff puts behind
// such a product is taken away where only updates, sums of a round (Accumulate) and sums of squares read it, which widen
// what they read themselves. A float32 number that was a bfloat16 one is the same number, so every result keeps its bits;
// the memory of gradients halves. PyTorch's autocast makes the same product in the low type and stores it as float32.
//
// The gradient of an embedding that is added to the product's gradient of the same table (fuse_gather_grad) is added in
// float32, row by row, and rounded once more to the low type, in the rows that were looked up: less than half a unit of the
// last place of the sum. PyTorch keeps float32 there; so does this engine with pass.narrow_gradients=off. Runs after
// fuse_gather_grad and before fuse_pointwise, which would join the casts with their neighbours.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status narrowGradients(Graph& graph, PassContext& context);

}  // namespace stepscope
