// Common subexpressions: two nodes with the same op, attributes, inputs and predicates become one; equal small constants
// become one. Random nodes are never merged (their masks are keyed by the imported node). Runs after eliminate_no_ops, and
// again after the gradient, where rules of neighbouring nodes ask for the same Shape, Transpose or Mul.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status eliminateCommonSubexpressions(Graph& graph, PassContext& context);

}  // namespace stepscope
