// Gives quantisation in training its gradient: behind each DequantizeLinear of what a QuantizeLinear with the same scale
// made, a StraightThrough hands the gradient to what was quantised (PyTorch exports its fake_quantize modules as such pairs,
// with a Clip between them for seven bits). Values stay what the pair computes; the scale gets no gradient through the pair,
// as in PyTorch.
//
// Runs after an `infer`, which tells the types, and before the next one. Blocks of scales are left as they are.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are pairs that were given one.
Status straightThrough(Graph& graph, PassContext& context);

}  // namespace stepscope
