// Replaces calls of model-local functions by their bodies.
//
// Runs after reading and before shape inference: every later pass sees only operators. Level by level, so that each call
// node, also one that stood inside a function, remains as the (removed) source of what replaced it. Calls inside subgraphs
// are replaced there. A graph without calls stays as it is, with its version.
//
//  - Values that the call produced keep their id and name; those inside are named "<call>/<name in the body>".
//  - Attribute references take the call's attribute, else the function's default, else the attribute is left out.
//  - A new node has pass "inline", sources = {call}, itself as `imported` (key of its random numbers), the body's module
//  path and
//    source where recorded there, else the call's, and the sinceVersion of the function's own opset import.
//  - Opset imports of functions that the model does not have are added to Graph::opsets.
//
// Time and memory are linear in the size of the result, which is known and limited before anything is copied.
// Errors: those of planFunctions; kInvalidArgument when a body uses an input that the call omits in a way that has no
// meaning.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/onnx/function.h"

namespace stepscope {

struct InlineReport {
  std::size_t calls = 0;  // replaced call nodes
  std::size_t nodes = 0;  // nodes that took their place, calls at deeper levels included
  int depth = 0;          // levels of calls
};

// Replaces every call by the body of its function. Errors: see the head of this file.
Result<InlineReport> inlineFunctions(Graph& graph, const std::vector<Function>& functions);

}  // namespace stepscope
