// Gives a LayerNormalization whose scale has another type than x the scale's type throughout: x is cast before it, the
// result back behind it.
//
// ONNX knows one type for all of them, PyTorch's autocast exports halves beside a float32 scale and goes on in halves. Runs
// after an `infer`, which tells the types, and before the next one.
#pragma once

#include "engine/ir/graph.h"

namespace stepscope {

// Returns how many nodes were settled.
std::size_t settleNormTypes(Graph& graph);

}  // namespace stepscope
