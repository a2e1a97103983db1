// Makes parameters of the weights that a file stores in Constant nodes.
//
// Paddle, spox and what is written by hand put weights into Constant nodes, exporters of PyTorch those of the branches of an
// If. A float constant in the role of a weight (weight_role.h) becomes an initializer with the name of its output, to be
// trained, saved and loaded like those that the file lists; the statistics of a normalisation too. A constant with an
// infinity in it stays what it is, and so do the constants in the body of a loop, which would be another weight in each
// iteration.
//
// Runs after lower_if, which brings the branches, and before anything folds constants.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

inline constexpr std::string_view kConstantWeightsPass = "constant_weights";

// Matches are constants that became initializers.
Status constantWeights(Graph& graph, PassContext& context);

// The initializers that this pass made, by index of value.
std::vector<bool> madeFromConstants(const Graph& graph);

}  // namespace stepscope
