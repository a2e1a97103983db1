// Losses over class numbers as passes, steps and reports meet them: scores [N, C, ...], labels [N, ...]. One question asked
// in one place, because pass fuse_cross_entropy gives the same loss another name.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/ir/graph.h"

namespace stepscope {

// SoftmaxCrossEntropyLoss, or com.microsoft.SoftmaxCrossEntropyLossInternal, which may answer in another type than it reads.
bool isCrossEntropy(const Node& node);
// One of these, or NegativeLogLikelihoodLoss.
bool isClassLoss(const Node& node);
// The label that a class loss does not count: its attribute, or the constant input 3 of the form of com.microsoft. Nothing
// where every label counts, or where the label is computed.
std::optional<std::int64_t> ignoredLabel(const Graph& graph, const Node& loss);

}  // namespace stepscope
