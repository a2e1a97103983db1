// Folds Transpose into the matrix products next to it: operands are read and results written where they are, so that
// attention moves no heads and weights that an exporter stores transposed are never copied. A Transpose that lets rows of
// many batches be one matrix stays. Runs after the gradient, on numbers for extents: the products of the gradient and the
// transposes of forward values are there then, and cse has merged equal ones.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status foldTransposes(Graph& graph, PassContext& context);

}  // namespace stepscope
