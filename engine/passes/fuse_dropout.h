// The sums around a Dropout are done by it: stepscope.BiasDropout, one pass over memory instead of three.
//
//   y = Dropout(x + bias) + residual        bias: a row of the last axis, or as x; residual: as x; one of them is enough
//
// The mask is the Dropout's own, drawn with its key. Runs after fuse_epilogue: a bias that a matrix product can add costs
// nothing there; and before fuse_pointwise, whose chains do not draw.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseDropout(Graph& graph, PassContext& context);

}  // namespace stepscope
