// Softmax of attention reads the scores and the mask in one pass: the Add or Where before a Softmax over the last axis goes
// into it. The gradient needs the result alone. Runs after fold_scales, which has taken 1/sqrt(d), and before
// fuse_pointwise.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseMaskedSoftmax(Graph& graph, PassContext& context);

}  // namespace stepscope
