// Logarithms of probabilities that only a loss reads are not stored: NegativeLogLikelihoodLoss(LogSoftmax(x)) is
// SoftmaxCrossEntropyLoss(x), and so is SoftmaxCrossEntropyLoss(LogSoftmax(x)), because the logarithm of a softmax is its
// own logarithm of a softmax. A Cast of a low type to float32 between the scores and the loss is done by the loss while it
// reads: output_type says what it answers in, and its gradient has the type of the scores. Runs before the gradient.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

Status fuseCrossEntropy(Graph& graph, PassContext& context);

}  // namespace stepscope
