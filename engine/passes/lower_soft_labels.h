// Rewrites SoftmaxCrossEntropyLoss whose labels are floats of the shape of the scores (probabilities of the classes, as
// PyTorch's exporters write them though ONNX knows class numbers only) into public ops: -Σ_c w_c · t_c · log softmax(x)_c.
//
// Runs after an `infer`, which tells the types, and before the next one. `mean` divides by the number of rows, as PyTorch
// does. A node is blocked where its second output is read.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status lowerSoftLabels(Graph& graph, PassContext& context);

}  // namespace stepscope
