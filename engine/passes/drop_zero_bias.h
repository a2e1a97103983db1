// Takes the bias from convolutions whose bias is a constant of zeros, whatever its shape.
//
// PyTorch's dynamo exporter writes such a bias for every convolution that has none, for three dimensions even of shape [C,
// 2], which is no bias at all. Runs after an `infer`, which tells the constants, and before the next one. A bias that is an
// initializer stays: it may be trained.
#pragma once

#include <cstddef>

#include "engine/passes/infer.h"

namespace stepscope {

// Returns how many convolutions lost their bias.
std::size_t dropZeroBias(Graph& graph, const Inference& inference);

}  // namespace stepscope
