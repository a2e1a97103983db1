// Finds running statistics that may count the first batch already: those of a BatchNormalization in training mode whose mean
// is not 0 or whose variance is not 1 in the file. The TorchScript exporter traces a model on its sample batch and writes
// statistics that count it. Whether a file's do is only known when that batch has been computed: the first step judges the
// matches (step/traced_statistics.h) and counts the batch once. With the pass off they are taken as they stand in the file.
#pragma once

#include "engine/passes/pass.h"

namespace stepscope {

// Changes nothing. Near misses: statistics that are the defaults, so that no batch can be in them.
Status findTracedStatistics(Graph& graph, PassContext& context);

}  // namespace stepscope
