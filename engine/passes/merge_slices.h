// Slices of one value that cover an axis without overlap, and Gathers that pick all of its places one by one, are one Split.
//
//   a = x[.., 0:n], b = x[.., n:]      (halves of rotary embeddings)        → a, b = Split(x)
//   q, k, v = x[0], x[1], x[2]         (a packed projection, unpacked)      → parts = Split(x), Squeeze of each
//
// Forward it saves little; backward the gradient of x is one Concat instead of as many zero-filled tensors as there are
// parts, and their sum. Runs before the gradient, after cse has merged equal slices.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status mergeSlices(Graph& graph, PassContext& context);

}  // namespace stepscope
