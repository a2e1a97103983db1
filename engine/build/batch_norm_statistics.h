// Running statistics of BatchNormalization, as state of the step.
#pragma once

#include "engine/passes/infer.h"

namespace stepscope {

// Opens every BatchNormalization of an inference file as it was in training: statistics of the batch, running ones updated.
// Adds to `opened` how many.
Status openBatchNorm(Graph& graph, Inference& inference, std::size_t& opened);
// What a training BatchNormalization writes becomes updates of the graph's state.
void addStatisticsUpdates(Graph& graph);

}  // namespace stepscope
