// Takes the rows that a Slice keeps before the matrix product that makes them: language models drop the last position of
// every sequence from the logits, which are the largest values of the step. Runs before the gradient, whose rule then works
// on the rows of the left operand.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status hoistSlices(Graph& graph, PassContext& context);

}  // namespace stepscope
