// Option loss-graph: a loss that somebody wrote as a model of its own.
//
// Its inputs are joined to the model by name: one that is called like a value of the model reads that value; any other
// becomes an input of the step, which the data feed (labels, weights of rows). Its float initializers are parameters like
// the model's. The loss is its only scalar float output, or the one named by option loss; other outputs are not computed.
#pragma once

#include <memory>

#include "engine/build/attach_loss.h"
#include "engine/build/registry.h"

namespace stepscope {

// Errors: those of importModel and splice; kInvalidArgument where it reads nothing that the model computes, or has no loss.
Result<LossChoice> attachLossGraph(Graph& graph, Inference& inference, const TrainOptions& options,
                                   std::shared_ptr<const Registry> registry);

}  // namespace stepscope
