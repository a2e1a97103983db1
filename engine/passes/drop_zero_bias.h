// Takes the bias from convolutions whose bias is a constant of zeros, whatever its shape.
//
// PyTorch's dynamo exporter writes such a bias for every convolution that has none, for three dimensions even of shape [C,
// 2], which is no bias at all. Runs after an `infer`, which tells the constants, and before the next one. A bias that is an
// initializer stays: it may be trained.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Matches are convolutions that lost their bias.
Status dropZeroBias(Graph& graph, PassContext& context);

}  // namespace stepscope
