// Puts the bodies of model-local functions where they are called (engine/onnx/inliner.h does the work).
//
// Stands first: every later pass sees only operators, and functions may be written in another opset than the model.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Reads PassContext::functions. Matches are calls.
Status inlineCalls(Graph& graph, PassContext& context);

}  // namespace stepscope
