// Gradient ops of Stepscope as the ops that a training build of ONNX Runtime has for them.
#pragma once

#include "engine/ir/graph.h"
#include "kernels/status.h"

namespace stepscope {

// Rewrites a graph of phase gradient that nobody plans any more: every node of our domain becomes one of com.microsoft, or
// several. BatchNormalization in training becomes BatchNormInternal, whose running statistics nobody stores there. Both
// gradients of a convolution become one ConvGrad. Errors: kUnsupported, naming all ops that have no such form.
Status useOnnxruntimeOps(Graph& graph);

}  // namespace stepscope
