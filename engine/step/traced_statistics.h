// Running statistics of a file that already count the first batch.
//
// The TorchScript exporter traces a model in training mode on its sample batch, so the statistics that it writes count that
// batch once. Where the file's statistics are the defaults (mean 0, variance 1) moved by exactly the first batch, for every
// channel of every BatchNormalization (with PyTorch's sample variance or ONNX's population variance), counting it again
// would leave PyTorch's result: the first update then starts from the defaults.
#pragma once

#include "engine/exec/executor.h"

namespace stepscope {

// Whether that is so, judged after the first step ran and before its state is written.
bool traceCountedFirstBatch(const Executor& executor);

// Whether `next` is a new running statistic of a BatchNormalization, fused or not.
bool writesStatistics(const Graph& graph, const Value& next);
// Writes the statistic after the first batch, counted from the defaults, over `state`; `computed` counts from `state`.
void firstStatistics(const Graph& graph, const Value& next, const TensorView& computed, const TensorView& state);

}  // namespace stepscope
