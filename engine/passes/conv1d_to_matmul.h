// A one-dimensional convolution with windows of one place is a matrix product of its channels.
//
//   Conv(x [N, C, L], w [M, C / g, 1], bias?)  →  MatMul(w [g, M / g, C / g], x [N, g, C / g, L]) as [N, M, L] (+ bias)
//
// Reshapes before and behind are views. The products can then fold transposes, scales and biases, which models that keep
// channels last put around such convolutions; the gradient of w is a product for every batch entry, and their sum. Off by
// default: whether it is faster depends on the extents (trials tell). Runs before the gradient.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status conv1dToMatMul(Graph& graph, PassContext& context);

}  // namespace stepscope
