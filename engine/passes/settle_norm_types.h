// Gives a LayerNormalization whose scale has another type than x the scale's type throughout: x is cast before it, the
// result back behind it.
//
// ONNX knows one type for all of them, PyTorch's autocast exports halves together with a float32 scale and goes on in
// halves. Runs after an `infer`, which tells the types, and before the next one.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are normalisations of mixed types.
Status settleNormTypes(Graph& graph, PassContext& context);

}  // namespace stepscope
