// Running statistics of a file that already count the first batch.
//
// The TorchScript exporter traces a model in training mode on its sample batch, so the statistics that it writes count that
// batch once. Where the file's statistics are the defaults (mean 0, variance 1) moved by exactly the first batch, for every
// channel of every BatchNormalization (with PyTorch's sample variance or ONNX's population variance), counting it again
// would leave PyTorch's result: the first update then starts from the defaults.
#pragma once

#include "engine/exec/executor.h"

namespace stepscope {

// The values that BatchNormalization writes as next statistics, in the order of the graph's state updates, with the share of
// the old ones that they keep.
struct NextStatistic {
  StateUpdate update;
  double momentum = 0;
};
std::vector<NextStatistic> nextStatistics(const Graph& graph);

// Whether the step has running statistics of a BatchNormalization, fused or not.
bool writesStatistics(const Graph& graph);

// Whether that is so, judged in the first step when all is computed and nothing committed. Error: a value that is not there.
Result<bool> traceCountedFirstBatch(const Executor& executor);
// Then: makes the next version of every statistic what it is after the first batch counted from the defaults.
Status writeFirstStatistics(Executor& executor);

}  // namespace stepscope
