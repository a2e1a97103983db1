// Logarithms of probabilities that only a loss reads are not stored: NegativeLogLikelihoodLoss(LogSoftmax(x)) is
// SoftmaxCrossEntropyLoss(x), and so is SoftmaxCrossEntropyLoss(LogSoftmax(x)), because the logarithm of a softmax is its
// own logarithm of a softmax. Runs before the gradient.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseCrossEntropy(Graph& graph, PassContext& context);

}  // namespace stepscope
