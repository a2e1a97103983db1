// Brings every ONNX node to the form of the internal opset (21): attributes that became inputs, renamed operators, changed
// defaults and meanings. After it an op has one shape rule, one gradient and one kernel. Of newer opsets it writes what 21
// can say with its own ops (Swish, SwiGLU, SpaceToDepth by columns) and drops attributes that only matter to types of 8 bits
// or less; Attention and RotaryEmbedding wait for inference (lower_attention).
//
// Runs right after `inline` (functions may be written in another opset) and before lower_if, so the branches of an If are
// raised where they hang. Nodes keep their ids; helper nodes have the node as their source, its module path and predicates.
// Before opset 12 Dropout had no training input and is, as ONNX says, in test mode: it hands its input on.
// Source: the version notes of the ONNX operator schemas (onnx/docs/Changelog.md).
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are nodes that were rewritten; a graph that is in the internal form keeps its version. A node without sinceVersion
// is taken to be of PassContext::opset. What a user should know (Dropout in test mode) is a warning.
// Errors: an opset outside 7..28; a form that opset 21 cannot say, naming the node.
Status raiseOpset(Graph& graph, PassContext& context);

}  // namespace stepscope
